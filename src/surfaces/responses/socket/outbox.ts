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

/** Counts the sent bytes of a request. */
type ByteCount = Pick<Exchange, 'addBytesOut'>

/** The frames of one response that wait until the client reads. */
type Writer = {
  readonly frames: readonly string[]
  next: number
  readonly counted: ByteCount | null
  readonly resolve: (written: number) => void
}

/**
 * Sends frames to one client at its speed. Nothing is sent while an earlier frame is buffered, so at
 * most one frame is buffered at a time. Responses that wait send one frame each in turn. Measured:
 * `sendText` returns -1 when a frame was buffered and 0 when the socket is closed; `drain` is called
 * after a full or partial flush, but not when the buffer was flushed while a message came in.
 */
export function createOutbox(
  wire: Wire,
  { readerStallMs, exchange }: { readerStallMs: number; exchange: ByteCount },
) {
  const queued: string[] = []
  let isOpen = true
  let stall: ReturnType<typeof setInterval> | null = null
  /** At most one per running response. */
  const writers: Writer[] = []
  let close: (() => void) | null = null

  function send(frame: string, counted: ByteCount | null): void {
    const sent = wire.sendText(frame)
    const bytes = sent === -1 ? Buffer.byteLength(frame) : sent
    exchange.addBytesOut(bytes)
    counted?.addBytesOut(bytes)
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
    while (queued.length > 0 && stall === null) send(queued.shift() ?? '', null)
    if (stall === null && writers.length > 0) wire.cork(resumeWriters)
    if (stall !== null) return
    if (wire.isPaused) wire.resume()
    close?.()
  }

  function resumeWriters(): void {
    while (stall === null) {
      const writer = writers.shift()
      if (writer === undefined) return
      if (writer.next === writer.frames.length) {
        writer.resolve(1)
        continue
      }
      send(writer.frames[writer.next++] ?? '', writer.counted)
      writers.push(writer)
    }
  }

  function write(frames: readonly string[], counted: ByteCount | null): number | Promise<number> {
    let next = 0
    while (stall === null && next < frames.length) send(frames[next++] ?? '', counted)
    if (stall === null) return 1
    return new Promise((resolve) => writers.push({ frames, next, counted, resolve }))
  }

  return {
    /** Writes frames of a response. Returns 0 if the client disconnected, a promise under backpressure. */
    write: (frames: readonly string[], counted: ByteCount | null): number | Promise<number> =>
      isOpen ? wire.cork(() => write(frames, counted)) : 0,
    /** Sends a frame that belongs to no response, or queues it under backpressure. */
    push(frame: string): void {
      if (!isOpen) return
      if (stall === null) {
        send(frame, null)
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
      for (const { resolve } of writers.splice(0)) resolve(0)
    },
  }
}
