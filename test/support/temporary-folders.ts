import { mkdirSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Kept between test runs, for what takes long to make. */
export const cacheFolder = process.env['SLUICE_TEST_CACHE'] ?? tmpdir()

/** Where databases of a test are faster than on disk, if there is such a folder with enough space. */
const memoryFolder = '/dev/shm'
/** For the databases of all test files that may run concurrently. */
const memoryBytesMin = 2 * 1024 ** 3

/**
 * Gives this process a temporary folder, which also its children use, and one in memory. Both are
 * removed when the process has ended in any way, also by a signal.
 */
export function useTemporaryFolders(): void {
  process.env['SLUICE_TEST_CACHE'] = cacheFolder
  const name = `sluice-tests-${process.pid}-${crypto.randomUUID().slice(0, 8)}`
  const folder = join(cacheFolder, name)
  const memory = hasMemory() ? join(memoryFolder, name) : folder
  mkdirSync(folder, { recursive: true })
  mkdirSync(memory, { recursive: true })
  process.env['TMPDIR'] = folder
  process.env['SLUICE_TEST_MEMORY'] = memory
  // Bun runs no exit handlers at the end of tests, and Ctrl-C reaches the whole process group.
  const remove = 'while kill -0 "$1" 2>/dev/null; do sleep 1; done; rm -rf "$2" "$3"'
  Bun.spawn(['sh', '-c', remove, 'sh', String(process.pid), folder, memory], {
    stdio: ['ignore', 'ignore', 'ignore'],
    detached: true,
  }).unref()
}

/** The data folder of gateways in this process. Nothing of it is left for the next run. */
export function dataFolder(): string {
  return join(tmpdir(), 'data')
}

/** The folder for databases of this process. */
export function databaseFolder(): string {
  return process.env['SLUICE_TEST_MEMORY'] ?? tmpdir()
}

function hasMemory(): boolean {
  try {
    const { bavail, bsize } = statfsSync(memoryFolder)
    return bavail * bsize >= memoryBytesMin
  } catch {
    return false
  }
}
