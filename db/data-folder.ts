import { Database } from 'bun:sqlite'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseStartError } from './start-error.ts'

export type DataFolderLock = { release(): void }

/**
 * Makes this process the only one that uses the folder: two on one PGlite directory destroy it. The
 * lock is SQLite's on an empty file, so the kernel frees it however the process ends.
 */
export function lockDataFolder(dataFolder: string): DataFolderLock {
  let lock: Database | undefined
  try {
    mkdirSync(dataFolder, { recursive: true, mode: 0o700 })
    lock = new Database(join(dataFolder, 'lock'), { create: true })
    lock.run('pragma busy_timeout = 0')
    lock.run('begin exclusive')
  } catch (error) {
    lock?.close()
    if (hasCode(error, 'SQLITE_BUSY')) {
      throw new DatabaseStartError(`The data folder ${dataFolder} is in use by another process.`)
    }
    const reason = error instanceof Error ? error.message : String(error)
    throw new DatabaseStartError(`The data folder ${dataFolder} cannot be used: ${reason}`, {
      cause: error,
    })
  }
  const held = lock
  return { release: () => held.close() }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
