import { readSocketQueues } from './socket-queues.ts'

/** Kernel buffers once all transfers have stopped. */
export type Standstill = {
  readonly tookMs: number
  /** Stalled client connections. */
  readonly readers: number
  /** Bytes written by the gateway, not read by clients. */
  readonly unreadByClients: number
  /** Bytes sent by the upstream, not read by the gateway. */
  readonly unreadByGateway: number
}

/** Time until all kernel buffers are full. */
const deadlineMs = 30_000
const lookEveryMs = 500
/** Unread bytes from which a reader counts as stalled. */
const unsentBytesMin = 256 * 1024

type Ports = { readonly port: number; readonly mockPort: number }

/**
 * Waits until the kernel buffers of this many readers are full and the gateway has stopped
 * writing.
 */
export async function waitForStandstill(ports: Ports, readers: number): Promise<Standstill> {
  const startedMs = performance.now()
  let last = look(ports)
  for (;;) {
    await Bun.sleep(lookEveryMs)
    const now = look(ports)
    const tookMs = performance.now() - startedMs
    const isStill = now.readers >= readers && now.unreadByClients === last.unreadByClients
    if (isStill || tookMs > deadlineMs) return { ...now, tookMs }
    last = now
  }
}

function look({ port, mockPort }: Ports): Omit<Standstill, 'tookMs'> {
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0)
  const queues = readSocketQueues()
  const sent = queues.filter(({ localPort }) => localPort === port)
  const received = queues.filter(({ remotePort }) => remotePort === port)
  const fromUpstream = queues.filter(({ remotePort }) => remotePort === mockPort)
  return {
    readers: sent.filter(({ unsentBytes }) => unsentBytes >= unsentBytesMin).length,
    unreadByClients:
      sum(sent.map(({ unsentBytes }) => unsentBytes)) +
      sum(received.map(({ unreadBytes }) => unreadBytes)),
    unreadByGateway: sum(fromUpstream.map(({ unreadBytes }) => unreadBytes)),
  }
}
