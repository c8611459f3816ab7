import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** The state of a socket that listens, in /proc/net/tcp. */
const listening = '0A'

/**
 * The process of this machine that listens on a TCP port, the oldest where several share it; null
 * where there is none or another user's.
 */
export function listeningPid(port: number): number | null {
  const inodes = new Set(['tcp', 'tcp6'].flatMap((file) => listeningInodes(file, port)))
  const pids = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .toSorted((one, other) => one - other)
  return pids.find((pid) => holds(pid, inodes)) ?? null
}

/** How many sockets of this machine listen on a TCP port: more than one where workers share it. */
export function countListeners(port: number): number {
  return ['tcp', 'tcp6'].flatMap((file) => listeningInodes(file, port)).length
}

function listeningInodes(file: string, port: number): string[] {
  const place = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  return readFileSync(`/proc/net/${file}`, 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/ +/))
    .filter(([, local, , state]) => local?.endsWith(place) === true && state === listening)
    .flatMap((fields) => fields[9] ?? [])
}

function holds(pid: number, inodes: ReadonlySet<string>): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1]
      return inode !== undefined && inodes.has(inode)
    })
  } catch {
    // It has ended, or is another user's.
    return false
  }
}
