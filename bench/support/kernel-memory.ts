import { readFileSync } from 'node:fs'

const pageBytes = 4096

/** Kernel memory of all TCP socket buffers of this machine. */
export function kernelSocketBytes(): number {
  const text = readFileSync('/proc/net/sockstat', 'utf8')
  return Number(/^TCP: .*\bmem (\d+)/m.exec(text)?.[1] ?? 0) * pageBytes
}
