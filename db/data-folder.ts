import { Database } from 'bun:sqlite'
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseStartError } from './start-error.ts'

export type DataFolderLock = { release(): void }

/** Kept from the collector, which would close the file, and so free the folder, under its holder. */
const heldLocks = new Set<Database>()

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
  heldLocks.add(held)
  return {
    release() {
      heldLocks.delete(held)
      held.close()
    },
  }
}

/** Whether a process uses the folder, and which one as far as the kernel tells. Changes nothing. */
export function findLockHolder(dataFolder: string): { pid: number | null } | null {
  const path = join(dataFolder, 'lock')
  if (!existsSync(path)) return null
  const lock = new Database(path, { readwrite: true, create: false })
  try {
    lock.run('pragma busy_timeout = 0')
    lock.run('begin exclusive')
    return null
  } catch (error) {
    if (hasCode(error, 'SQLITE_BUSY')) return { pid: findLocker(path) }
    throw error
  } finally {
    lock.close()
  }
}

/** Linux lists who holds a lock on which inode: `3: POSIX  ADVISORY  WRITE 1234 00:2d:5678 …`. */
function findLocker(path: string): number | null {
  const locks = '/proc/locks'
  if (!existsSync(locks)) return null
  const { ino } = statSync(path)
  const held = readFileSync(locks, 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .find(([, , , kind, , file]) => kind === 'WRITE' && file?.endsWith(`:${ino}`))
  const pid = Number(held?.[4])
  return Number.isInteger(pid) && pid > 0 ? pid : null
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
