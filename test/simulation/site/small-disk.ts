import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** A folder with a file system of its own that can be filled. */
export type SmallDisk = {
  readonly folder: string
  /** Null where this process may not mount one: the disk never fills then. */
  readonly fill: (() => void) | null
  free(): void
  remove(): void
}

const diskBytes = 96 * 1024 * 1024

export function mountSmallDisk(folder: string): SmallDisk {
  mkdirSync(folder, { recursive: true })
  const mount = ['mount', '-t', 'tmpfs', '-o', `size=${diskBytes}`, 'sluice-simulation', folder]
  const isMounted = succeeds(mount)
  const filler = join(folder, 'filler')
  if (isMounted) unmountAtExit(folder)
  return {
    folder,
    fill: isMounted ? () => fillWith(filler) : null,
    free: () => rmSync(filler, { force: true }),
    remove() {
      if (isMounted) succeeds(['umount', '-l', folder])
    },
  }
}

function succeeds(command: string[]): boolean {
  try {
    return Bun.spawnSync(command, { stdout: 'ignore', stderr: 'ignore' }).success
  } catch {
    return false
  }
}

/** Writes until the file system has no space left. */
function fillWith(path: string): void {
  const file = openSync(path, 'a')
  for (let bytes = 1024 * 1024; bytes >= 1; ) {
    try {
      if (writeSync(file, Buffer.alloc(bytes)) === bytes) continue
    } catch (error) {
      if (Object(error).code !== 'ENOSPC') throw error
    }
    bytes = Math.floor(bytes / 2)
  }
  closeSync(file)
}

/** Also if this process is killed. */
function unmountAtExit(folder: string): void {
  const script = 'while kill -0 "$1" 2>/dev/null; do sleep 1; done; umount -l "$2" 2>/dev/null'
  Bun.spawn(['sh', '-c', script, 'sh', String(process.pid), folder], {
    stdio: ['ignore', 'ignore', 'ignore'],
    detached: true,
  }).unref()
}
