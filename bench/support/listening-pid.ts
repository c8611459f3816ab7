import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** State of listening sockets in /proc/net/tcp. */
const listening = '0A'

/**
 * Id of the oldest process that listens on a TCP port; null if there is none or it belongs to
 * another user.
 */
export function listeningPid(port: number): number | null {
  const inodes = new Set(['tcp', 'tcp6'].flatMap((file) => listeningInodes(file, port)))
  const pids = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .toSorted((one, other) => one - other)
  return pids.find((pid) => holds(pid, inodes)) ?? null
}

/** Number of sockets that listen on a TCP port; several if workers share it. */
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
    // Exited, or owned by another user.
    return false
  }
}
