import { readFileSync } from 'node:fs'

/** One socket in the kernel's table of TCP over IPv4 (Linux). */
export type TcpRow = {
  readonly localPort: number
  readonly remotePort: number
  /** `01` established, `02` connecting. */
  readonly state: string
  /** `02`: the next event is a keep-alive probe. */
  readonly timer: string
  readonly inode: string
}

export function readTcpTable(): TcpRow[] {
  const [, ...lines] = readFileSync('/proc/net/tcp', 'utf8').trim().split('\n')
  return lines.map((line) => {
    const [, local = '', remote = '', state = '', , timer = '', , , , inode = ''] = line
      .trim()
      .split(/\s+/)
    return {
      localPort: portOf(local),
      remotePort: portOf(remote),
      state,
      timer: timer.slice(0, 2),
      inode,
    }
  })
}

/** `0100007F:1F90` is 127.0.0.1:8080. */
function portOf(address: string): number {
  return Number.parseInt(address.split(':')[1] ?? '', 16)
}
