import { readFileSync } from 'node:fs'

/** One end of a local IPv4 TCP connection, from the kernel. */
export type SocketQueue = {
  readonly localPort: number
  readonly remotePort: number
  /** Bytes sent and not acknowledged. */
  readonly unsentBytes: number
  /** Bytes received and not read. */
  readonly unreadBytes: number
}

const establishedState = '01'

/** Each established connection appears twice, once per end. */
export function readSocketQueues(): SocketQueue[] {
  const [, ...lines] = readFileSync('/proc/net/tcp', 'utf8').trim().split('\n')
  return lines.flatMap((line) => {
    const [, local = '', remote = '', state, queues = ''] = line.trim().split(/\s+/)
    if (state !== establishedState) return []
    const [unsent = '', unread = ''] = queues.split(':')
    const portOf = (address: string) => Number.parseInt(address.split(':')[1] ?? '', 16)
    return {
      localPort: portOf(local),
      remotePort: portOf(remote),
      unsentBytes: Number.parseInt(unsent, 16),
      unreadBytes: Number.parseInt(unread, 16),
    }
  })
}

const pageBytes = 4096

/** Kernel memory of all TCP socket buffers of this machine. */
export function kernelSocketBytes(): number {
  const text = readFileSync('/proc/net/sockstat', 'utf8')
  return Number(/^TCP: .*\bmem (\d+)/m.exec(text)?.[1] ?? 0) * pageBytes
}
