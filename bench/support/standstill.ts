import { readSocketQueues } from './socket-queues.ts'

/** What the kernel holds once nothing moves any more. */
export type Standstill = {
  readonly tookMs: number
  /** Connections with clients that have stalled. */
  readonly readers: number
  /** Written by the gateway and not read by its clients. */
  readonly unreadByClients: number
  /** Sent by the upstream and not read by the gateway. */
  readonly unreadByGateway: number
}

/** The kernels' buffers of all of them are full after this time at the latest. */
const deadlineMs = 30_000
const lookEveryMs = 500
/** A reader is taken for stalled when the kernel holds so much that it has not read. */
const unsentBytesMin = 256 * 1024

type Ports = { readonly port: number; readonly mockPort: number }

/** Waits until the kernel holds for so many readers what it will, and the gateway writes no more. */
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
