import { randomBytes } from 'node:crypto'
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const secretCharsMin = 32

/**
 * The signing secret of development tokens, stored in the data folder so that tokens survive a
 * restart. Only used without an identity provider.
 */
export function loadOrCreateDevSecret(dataFolder: string): string {
  const path = join(dataFolder, 'dev-jwt-secret')
  const secret = readIfThere(path) ?? createSecret(dataFolder, path)
  if (secret.length < secretCharsMin) {
    throw new Error(`${path} is damaged; delete it to create a new one.`)
  }
  return secret
}

/** Processes may start concurrently: the first one to link its file wins. */
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
