import type { ServerWebSocket } from 'bun'
import type { Exchange } from '#lib/exchange.ts'

/** The methods of Bun's WebSocket that the outbox uses. */
export type Wire = Pick<
  ServerWebSocket<unknown>,
  | 'sendText'
  | 'cork'
  | 'close'
  | 'terminate'
  | 'pause'
  | 'resume'
  | 'isPaused'
  | 'getBufferedAmount'
>

/** Maximum number of queued frames; a client that causes more does not read at all. */
const queuedFramesMax = 64
/** How often a stalled client is checked. */
const stallCheckMs = 250

/**
 * Sends frames to one client at its speed. Nothing is sent while an earlier frame is buffered, so at
 * most one frame is buffered at a time. Measured: `sendText` returns -1 when a frame was buffered and
 * 0 when the socket is closed; `drain` is called after a full or partial flush, but not when the
 * buffer was flushed while a message came in.
 */
export function createOutbox(
  wire: Wire,
  { readerStallMs, exchange }: { readerStallMs: number; exchange: Pick<Exchange, 'addBytesOut'> },
) {
  const queued: string[] = []
  let isOpen = true
  let stall: ReturnType<typeof setInterval> | null = null
  let resumeWrite: (written: number) => void = () => {}
  let close: (() => void) | null = null

  function send(frame: string): void {
    const sent = wire.sendText(frame)
    exchange.addBytesOut(sent === -1 ? Buffer.byteLength(frame) : sent)
    if (sent !== -1) return
    // A frame that belongs to no response has no writer with a stall deadline.
    const stalledAt = performance.now()
    stall = setInterval(
      () => {
        if (wire.getBufferedAmount() === 0) drained()
        else if (performance.now() - stalledAt >= readerStallMs) wire.terminate()
      },
      Math.min(stallCheckMs, readerStallMs),
    )
  }

  function endStall(): void {
    if (stall !== null) clearInterval(stall)
    stall = null
  }

  function drained(): void {
    if (wire.getBufferedAmount() > 0) return
    endStall()
    while (queued.length > 0 && stall === null) send(queued.shift() ?? '')
    if (stall !== null) return
    if (wire.isPaused) wire.resume()
    close?.()
    resumeWrite(1)
  }

  function write(frames: readonly string[], from: number): number | Promise<number> {
    let next = from
    while (stall === null && next < frames.length) send(frames[next++] ?? '')
    if (stall === null) return 1
    const resumed = new Promise<number>((resolve) => {
      resumeWrite = resolve
    })
    return resumed.then((written) => (written === 0 ? 0 : writeCorked(frames, next)))
  }

  /** Sends frames in one system call. */
  const writeCorked = (frames: readonly string[], from: number): number | Promise<number> =>
    isOpen ? wire.cork(() => write(frames, from)) : 0

  return {
    /** Writes frames of a response. Returns 0 if the client disconnected, a promise under backpressure. */
    write: (frames: readonly string[]) => writeCorked(frames, 0),
    /** Sends a frame that belongs to no response, or queues it under backpressure. */
    push(frame: string): void {
      if (!isOpen) return
      if (stall === null) {
        send(frame)
        return
      }
      if (queued.length >= queuedFramesMax) {
        wire.terminate()
        return
      }
      queued.push(frame)
      // A client that does not read may not send further requests. A paused socket does not notice
      // a disconnect; the stall timer bounds that.
      wire.pause()
    },
    /** Closes the connection when everything has been sent. */
    finish(closeCode: number, reason: string) {
      close = () => wire.close(closeCode, reason)
      if (stall === null) close()
    },
    drained,
    closed() {
      isOpen = false
      endStall()
      queued.length = 0
      resumeWrite(0)
    },
  }
}
