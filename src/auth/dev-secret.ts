import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const secretCharsMin = 32

/**
 * The signing secret of development tokens, stored in the data folder so that tokens survive a
 * restart. Only used without an identity provider.
 */
export function loadOrCreateDevSecret(dataFolder: string): string {
  const path = join(dataFolder, 'dev-jwt-secret')
  if (!existsSync(path)) createSecret(dataFolder, path)
  const secret = readFileSync(path, 'utf8').trim()
  if (secret.length < secretCharsMin) {
    throw new Error(`${path} is damaged; delete it to create a new one.`)
  }
  return secret
}

/** Processes may start concurrently: the first one to link its file wins. */
function createSecret(dataFolder: string, path: string): void {
  mkdirSync(dataFolder, { recursive: true, mode: 0o700 })
  const draft = `${path}.${Bun.randomUUIDv7()}`
  writeFileSync(draft, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600 })
  try {
    linkSync(draft, path)
  } catch (error) {
    if (!existsSync(path)) throw error
  } finally {
    rmSync(draft)
  }
}
