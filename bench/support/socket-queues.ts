import { readFileSync } from 'node:fs'

/** One end of a TCP connection over IPv4 on this machine, as the kernel sees it. */
export type SocketQueue = {
  readonly localPort: number
  readonly remotePort: number
  /** What was written and the other end has not taken. */
  readonly unsentBytes: number
  /** What came and the program has not read. */
  readonly unreadBytes: number
}

const establishedState = '01'

/** Every established connection has two lines, one for each of its ends. */
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
