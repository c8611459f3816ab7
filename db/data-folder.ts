import { Database } from 'bun:sqlite'
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseStartError } from './start-error.ts'

export type DataFolderLock = { release(): void }

/** Protects the locks from garbage collection, which would close the file and release the folder. */
const heldLocks = new Set<Database>()

/**
 * Locks the folder for this process: two processes on one PGlite directory corrupt it. Uses SQLite's
 * lock of an empty file, which the kernel releases however the process ends.
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
      const pid = findLockPid(join(dataFolder, 'lock'))
      const holder = pid === null ? 'another process' : `process ${pid}`
      throw new DatabaseStartError(`The data folder ${dataFolder} is in use by ${holder}.`)
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

/** The process that has locked the folder; `pid` is null if the kernel does not tell. Read-only. */
export function findLockHolder(dataFolder: string): { pid: number | null } | null {
  const path = join(dataFolder, 'lock')
  if (!existsSync(path)) return null
  const lock = new Database(path, { readwrite: true, create: false })
  try {
    lock.run('pragma busy_timeout = 0')
    lock.run('begin exclusive')
    return null
  } catch (error) {
    if (hasCode(error, 'SQLITE_BUSY')) return { pid: findLockPid(path) }
    throw error
  } finally {
    lock.close()
  }
}

/** Linux lists the locks and their inodes: `3: POSIX  ADVISORY  WRITE 1234 00:2d:5678 …`. */
function findLockPid(path: string): number | null {
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
