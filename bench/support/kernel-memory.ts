import { readFileSync } from 'node:fs'

const pageBytes = 4096

/** What the kernel keeps in the buffers of all TCP sockets of this machine. */
export function kernelSocketBytes(): number {
  const text = readFileSync('/proc/net/sockstat', 'utf8')
  return Number(/^TCP: .*\bmem (\d+)/m.exec(text)?.[1] ?? 0) * pageBytes
}
