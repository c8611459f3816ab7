import { Database } from 'bun:sqlite'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '#telemetry/log.ts'
import { DatabaseStartError } from './start-error.ts'

export type DataFolderLock = { release(): void }

/** How long to wait for a folder that another process has locked. */
export type FolderWait = {
  /** It may be a worker that is about to notice that its supervisor is gone. */
  readonly lockedMs: number
  /** After `announceEnd` by that process. */
  readonly endingMs: number
}

const retryMs = 100
/** Contains the pid of an ending process that still has the lock. */
const endingFile = 'lock.ending'

class FolderInUseError extends DatabaseStartError {}

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
      const pid = pidOfLock(dataFolder)
      const holder = pid === null ? 'another process' : `process ${pid}`
      throw new FolderInUseError(`The data folder ${dataFolder} is in use by ${holder}.`)
    }
    const reason = error instanceof Error ? error.message : String(error)
    throw new DatabaseStartError(`The data folder ${dataFolder} cannot be used: ${reason}`, {
      cause: error,
    })
  }
  const held = lock
  heldLocks.add(held)
  rmSync(join(dataFolder, endingFile), { force: true })
  return {
    release() {
      heldLocks.delete(held)
      held.close()
    },
  }
}

/** The same, after another process has released the folder in time. */
export async function awaitDataFolder(
  dataFolder: string,
  wait: FolderWait,
  log: Pick<Log, 'info'>,
): Promise<DataFolderLock> {
  const startedAt = performance.now()
  for (let attempt = 0; ; attempt++) {
    try {
      return lockDataFolder(dataFolder)
    } catch (error) {
      const limitMs = isEnding(dataFolder) ? wait.endingMs : wait.lockedMs
      const waitedMs = performance.now() - startedAt
      if (!(error instanceof FolderInUseError) || waitedMs >= limitMs) throw error
      if (attempt === 0) log.info('data folder in use, waiting', { pid: pidOfLock(dataFolder) })
      await Bun.sleep(retryMs)
    }
  }
}

/** Tells processes that wait for the folder that this one, which has locked it, is ending. */
export function announceEnd(dataFolder: string): void {
  writeFileSync(join(dataFolder, endingFile), String(process.pid))
}

function isEnding(dataFolder: string): boolean {
  const path = join(dataFolder, endingFile)
  if (!existsSync(path)) return false
  const holder = pidOfLock(dataFolder)
  return holder === null || readFileSync(path, 'utf8') === String(holder)
}

function pidOfLock(dataFolder: string): number | null {
  return findLockPid(join(dataFolder, 'lock'))
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
