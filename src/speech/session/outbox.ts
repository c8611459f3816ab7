import type { ServerWebSocket } from 'bun'
import { createFrameLog } from './frame-log.ts'
import { renderFrame, type UnsentFrame } from './server-frames.ts'

/** The part of Bun's socket that is used here. */
export type Wire = Pick<
  ServerWebSocket<unknown>,
  | 'sendText'
  | 'close'
  | 'terminate'
  | 'pause'
  | 'resume'
  | 'isPaused'
  | 'ping'
  | 'getBufferedAmount'
>

/**
 * The frames of one session, over all of its sockets. Frames are numbered when they go out. While
 * the client does not read, frames wait here, and of partials and acknowledgements only the newest;
 * everything else is kept in order. While there is no client at all, they go to the log alone.
 */
export type Outbox = {
  push(frame: UnsentFrame): void
  /** A new socket. What its client missed goes out first; returns what was forgotten. */
  attach(wire: Wire, lastSeq: number): { readonly forgottenSeq: number }
  /** The socket is gone: what waits goes to the log. */
  detach(): void
  drained(): void
  /** Calls back once everything has been handed to the kernel; at once without a socket. */
  finish(whenFlushed: () => void): void
  /** A number for a frame that is sent beside the outbox. */
  takeSeq(): number
  pendingBytes(): number
  /** Characters of the log. */
  logChars(): number
  readonly partials: { sent: number; dropped: number }
}

/** So much may be in Bun's own buffer; what is more waits here, where it can be put together. */
const handedBytesMax = 65_536

/** Worth nothing any more once there is a newer one. */
type PassingKind = 'partial' | 'ack'

export function createOutbox(options: { logCharsMax: number }): Outbox {
  const log = createFrameLog(options.logCharsMax)
  const partials = { sent: 0, dropped: 0 }
  const waiting = createWaiting(() => partials.dropped++)
  let wire: Wire | null = null
  let seq = 0
  let flushed: (() => void) | null = null

  function number(frame: UnsentFrame): string {
    const text = renderFrame(frame, ++seq)
    // A client that comes back is told anew what `session_ready` says.
    if (passingKind(frame) === null && frame.type !== 'session_ready') log.add(seq, text)
    return text
  }

  function send(frame: UnsentFrame): void {
    if (passingKind(frame) === 'partial') partials.sent++
    wire?.sendText(number(frame))
  }

  const canSend = () => wire !== null && wire.getBufferedAmount() <= handedBytesMax

  function flush(): void {
    while (canSend()) {
      const frame = waiting.take()
      if (frame === null) break
      send(frame)
    }
    if (flushed === null || waiting.chars() > 0) return
    if (wire !== null && wire.getBufferedAmount() > 0) return
    const tell = flushed
    flushed = null
    tell()
  }

  function shelve(frame: UnsentFrame): void {
    const kind = passingKind(frame)
    if (kind === null) number(frame)
    if (kind === 'partial') partials.dropped++
  }

  return {
    push(frame) {
      if (wire === null) shelve(frame)
      else if (waiting.chars() === 0 && canSend()) send(frame)
      else waiting.add(frame)
    },
    attach(newWire, lastSeq) {
      wire = newWire
      // Bounded by the size of the log; what is more than the client takes waits in Bun.
      for (const text of log.after(lastSeq)) wire.sendText(text)
      return { forgottenSeq: log.forgottenSeq() }
    },
    detach() {
      wire = null
      for (let frame = waiting.take(); frame !== null; frame = waiting.take()) shelve(frame)
      flush()
    },
    drained: flush,
    finish(whenFlushed) {
      flushed = whenFlushed
      flush()
    },
    takeSeq: () => ++seq,
    pendingBytes: () => waiting.chars() + (wire?.getBufferedAmount() ?? 0),
    logChars: log.chars,
    partials,
  }
}

/** Frames in their order, of which newer ones take the place of older ones that pass. */
function createWaiting(droppedPartial: () => void) {
  let frames: { readonly frame: UnsentFrame; readonly chars: number }[] = []
  let chars = 0

  function drop(isSuperseded: (frame: UnsentFrame) => boolean): void {
    frames = frames.filter((waiting) => {
      if (!isSuperseded(waiting.frame)) return true
      chars -= waiting.chars
      if (passingKind(waiting.frame) === 'partial') droppedPartial()
      return false
    })
  }

  return {
    add(frame: UnsentFrame) {
      if (frame.type === 'audio_ack') drop((older) => older.type === 'audio_ack')
      if (frame.type === 'transcript') drop((older) => isPartialOf(older, frame.segment))
      const waiting = { frame, chars: JSON.stringify(frame).length }
      frames.push(waiting)
      chars += waiting.chars
    },
    take(): UnsentFrame | null {
      const first = frames.shift()
      if (first === undefined) return null
      chars -= first.chars
      return first.frame
    },
    chars: () => chars,
  }
}

function passingKind(frame: UnsentFrame): PassingKind | null {
  if (frame.type === 'audio_ack') return 'ack'
  return frame.type === 'transcript' && !frame.is_final ? 'partial' : null
}

function isPartialOf(frame: UnsentFrame, segment: number): boolean {
  return frame.type === 'transcript' && !frame.is_final && frame.segment === segment
}
