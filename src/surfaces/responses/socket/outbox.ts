import type { ServerWebSocket } from 'bun'

/** The part of Bun's socket that is used here. */
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

/**
 * What goes to one client, at its speed. Nothing is sent while something that was sent before waits
 * for the client, so at most one frame is buffered. Measured: `sendText` answers -1 when a frame has
 * to wait and 0 when the socket is closed; `drain` is called after a flush, also of a part, but not
 * where what waited went out as a message came in.
 */
export type Outbox = {
  /** Frames of a turn: 0 when the client has gone, a promise when it must be waited for. */
  write(frames: readonly string[]): number | Promise<number>
  /** A frame beside those of a turn; it waits for its place where it must. */
  push(frame: string): void
  /** Closes the connection once everything has gone out. */
  finish(closeCode: number, reason: string): void
  drained(): void
  closed(): void
}

/** So many frames may wait beside those of a turn; whoever causes more does not read at all. */
const pushedFramesMax = 64
/** How often a client that does not read is looked at. */
const lookMs = 250

export function createOutbox(wire: Wire, { readerStallMs }: { readerStallMs: number }): Outbox {
  const pushed: string[] = []
  let isOpen = true
  let stall: ReturnType<typeof setInterval> | null = null
  let goOn: (written: number) => void = () => {}
  let close: (() => void) | null = null

  function send(frame: string): void {
    if (wire.sendText(frame) !== -1) return
    // A timer of its own, since a frame beside a turn has no writer that watches over it.
    const stalledAt = performance.now()
    stall = setInterval(
      () => {
        if (wire.getBufferedAmount() === 0) drained()
        else if (performance.now() - stalledAt >= readerStallMs) wire.terminate()
      },
      Math.min(lookMs, readerStallMs),
    )
  }

  function endStall(): void {
    if (stall !== null) clearInterval(stall)
    stall = null
  }

  function drained(): void {
    if (wire.getBufferedAmount() > 0) return
    endStall()
    while (pushed.length > 0 && stall === null) send(pushed.shift() ?? '')
    if (stall !== null) return
    if (wire.isPaused) wire.resume()
    close?.()
    goOn(1)
  }

  function write(frames: readonly string[], from: number): number | Promise<number> {
    let next = from
    while (stall === null && next < frames.length) send(frames[next++] ?? '')
    if (stall === null) return 1
    const goneOn = new Promise<number>((resolve) => {
      goOn = resolve
    })
    return goneOn.then((written) => (written === 0 ? 0 : writeTogether(frames, next)))
  }

  /** In one system call, as far as the client takes it. */
  const writeTogether = (frames: readonly string[], from: number) =>
    isOpen ? wire.cork(() => write(frames, from)) : 0

  return {
    write: (frames) => writeTogether(frames, 0),
    push(frame) {
      if (!isOpen) return
      if (stall === null) return send(frame)
      if (pushed.length >= pushedFramesMax) return wire.terminate()
      pushed.push(frame)
      // What is not read cannot ask for more. A paused socket does not notice that its client has
      // gone, which the timer bounds.
      wire.pause()
    },
    finish(closeCode, reason) {
      close = () => wire.close(closeCode, reason)
      if (stall === null) close()
    },
    drained,
    closed() {
      isOpen = false
      endStall()
      pushed.length = 0
      goOn(0)
    },
  }
}
