import { jitteredBackoffMs } from '#lib/backoff.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import type { EventLog, LogReader } from './event-log.ts'
import { countFrames, framesAfter } from './log-segment.ts'
import type { ResponseObject } from './response.ts'
import type { ResponseStore } from './store.ts'

export type FrameStreamDeps = {
  store: ResponseStore
  /** The terminal frames of a response whose log has none, from this sequence number on. */
  renderTerminalFrames: (object: ResponseObject, nextSequence: number) => string
  /** Characters per read of the stored log. */
  charsMax: number
  /** How long a reader waits for an unavailable database. */
  outageMaxMs: number
}

/**
 * Whole SSE frames, several at a time, without the closing `[DONE]`. Ends at once when the reader's
 * signal aborts.
 */
export type Frames = AsyncGenerator<string, void, void>

/** Where a stream starts; the signal ends it. */
export type FrameRange = { readonly startingAfter: number; readonly signal: AbortSignal }

const outageBackoff = { firstMs: 100, maxMs: 1_000 }

/** Streams the frames after a sequence number at the reader's pace. `onDetach` is called once. */
export function streamFrames(
  source: { id: string; log: EventLog },
  range: FrameRange,
  { onDetach = () => {}, ...deps }: FrameStreamDeps & { onDetach?: () => void },
): Frames {
  const reader = source.log.attach(range.startingAfter)
  let attached = true
  const detach = () => {
    if (!attached) return
    attached = false
    range.signal.removeEventListener('abort', detach)
    reader.detach()
    onDetach()
    reader.wake()
  }
  if (range.signal.aborted) detach()
  else range.signal.addEventListener('abort', detach)
  return read()

  /** Repeats what fails for lack of the database; '' after the reader has left. */
  async function throughOutage(step: () => Promise<string>): Promise<string> {
    const startedAt = performance.now()
    for (let failures = 1; ; failures++) {
      try {
        return await step()
      } catch (error) {
        if (!attached) return ''
        const isOver = performance.now() - startedAt >= deps.outageMaxMs
        if (isOver || toAppError(error).kind !== 'service_unavailable') throw error
        await Bun.sleep(jitteredBackoffMs(failures, outageBackoff))
      }
    }
  }

  async function* read(): Frames {
    try {
      while (attached) {
        const step = reader.read()
        if (step === 'evicted') {
          const frames = await throughOutage(() => readStored(source, reader, deps))
          if (frames !== '' && attached) yield frames
        } else if (step !== null) {
          reader.moveTo(step.last)
          yield step.frames
        } else if (source.log.ended() !== null) {
          const frames = terminalFrames(source.log, reader, deps)
          if (frames !== '') yield frames
          return
        } else {
          await reader.changed()
        }
      }
    } finally {
      detach()
    }
  }
}

/** Reads evicted frames from the database; '' if they are not there yet. */
async function readStored(
  { id, log }: { id: string; log: EventLog },
  reader: LogReader,
  { store, charsMax }: FrameStreamDeps,
): Promise<string> {
  const after = reader.position()
  const segments = await store.readLog(id, after, charsMax)
  let position = after
  let frames = ''
  for (const segment of segments) {
    if (segment.first > position + 1) break
    frames += framesAfter(segment, position)
    position = Math.max(position, segment.last)
  }
  if (position > after) reader.moveTo(position)
  else if (segments.length > 0 || log.ended() !== null) throw streamExpired()
  else await reader.changed()
  return frames
}

/**
 * Terminal frames for this reader only; '' if the log holds them. Throws for a failed log. A reader that
 * is ahead of the log has received frames that were never logged, and gets no others of that item.
 */
function terminalFrames(
  log: EventLog,
  reader: LogReader,
  { renderTerminalFrames }: FrameStreamDeps,
): string {
  const end = log.ended()
  if (end?.kind === 'failed') throw end.error
  if (end?.kind !== 'truncated') return ''
  const position = Math.max(log.last(), reader.position())
  const closing = position > log.last() ? '' : end.closing
  return closing + renderTerminalFrames(end.object, position + 1 + countFrames(closing))
}

export function streamExpired(): AppError {
  return new AppError('not_found', 'The stream of this response has expired.', {
    code: 'stream_expired',
  })
}
