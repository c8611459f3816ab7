import type { Socket } from 'bun'
import { readSocketQueues } from './socket-queues.ts'
import { type Faults, noteFailure } from './stream-check.ts'

/** Clients that request a stream, receive its start and stop reading. */
export type StalledReaders = {
  /** Clients whose stream has started. */
  stalled(): number
  /** Clients that the server disconnected. */
  cutOff(): number
  /** Disconnects all. */
  close(): void
}

type Reader = { text: string; isStalled: boolean }

const firstToken = 't0@'

/** Runs in this process; stalled clients cost nothing. */
export async function openStalledReaders(options: {
  readonly port: number
  readonly request: Buffer
  readonly count: number
  /** Records streams that do not start correctly. */
  readonly faults: Faults
}): Promise<StalledReaders> {
  const { port, request, count, faults } = options
  let stalled = 0
  let cutOff = 0
  let isOver = false

  function take(socket: Socket<Reader>, bytes: Buffer): void {
    const reader = socket.data
    if (reader.isStalled) return
    reader.text += bytes.toString('latin1')
    if (!reader.text.startsWith('HTTP/1.1 200')) {
      noteFailure(faults, `a stalled client received an error: ${reader.text}`)
    }
    if (!reader.text.includes(firstToken)) return
    reader.isStalled = true
    stalled++
    socket.pause()
  }

  const open = () =>
    Bun.connect<Reader>({
      hostname: '127.0.0.1',
      port,
      data: { text: '', isStalled: false },
      socket: {
        open: (socket) => void socket.write(request),
        data: take,
        close: () => {
          if (!isOver) cutOff++
        },
        error: () => undefined,
      },
    })
  const sockets = await Promise.all(Array.from({ length: count }, open))
  return {
    stalled: () => stalled,
    cutOff: () => cutOff,
    close() {
      isOver = true
      for (const socket of sockets) socket.terminate()
    },
  }
}

/** Kernel buffers once all transfers have stopped. */
export type StalledBuffers = {
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
export async function waitForStalledBuffers(
  ports: Ports,
  readers: number,
): Promise<StalledBuffers> {
  const startedMs = performance.now()
  let last = readBuffers(ports)
  for (;;) {
    await Bun.sleep(lookEveryMs)
    const now = readBuffers(ports)
    const tookMs = performance.now() - startedMs
    const isStill = now.readers >= readers && now.unreadByClients === last.unreadByClients
    if (isStill || tookMs > deadlineMs) return { ...now, tookMs }
    last = now
  }
}

function readBuffers({ port, mockPort }: Ports): Omit<StalledBuffers, 'tookMs'> {
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
