import { randomBytes } from 'node:crypto'
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const secretCharsMin = 32

/**
 * The secret that development tokens are signed with, kept in the data folder so that tokens work
 * after a restart. For use without an identity provider only.
 */
export function loadOrCreateDevSecret(dataFolder: string): string {
  const path = join(dataFolder, 'dev-jwt-secret')
  const secret = readIfThere(path) ?? createSecret(dataFolder, path)
  if (secret.length < secretCharsMin) {
    throw new Error(`${path} is damaged; delete it, and a new one will be made.`)
  }
  return secret
}

/** Several processes may start at once: the first to put the whole file in place wins. */
function createSecret(dataFolder: string, path: string): string {
  mkdirSync(dataFolder, { recursive: true, mode: 0o700 })
  const draft = `${path}.${process.pid}-${randomBytes(4).toString('hex')}`
  writeFileSync(draft, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' })
  try {
    linkSync(draft, path)
  } catch (error) {
    if (readIfThere(path) === undefined) throw error
  } finally {
    rmSync(draft)
  }
  return readIfThere(path) ?? ''
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
