import type { Socket } from 'bun'
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
      noteFailure(faults, `a stream that was to stall was answered: ${reader.text}`)
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
