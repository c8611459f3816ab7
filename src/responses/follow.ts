import { AppError } from '#lib/errors.ts'
import type { EventLog, LogReader } from './event-log.ts'
import { framesBehind } from './log-segment.ts'
import type { ResponseObject } from './response.ts'
import type { Frames } from './runs.ts'
import type { ResponseStore } from './store.ts'

export type FollowDeps = {
  store: Pick<ResponseStore, 'readLog'>
  /** The terminal frames of a response whose log has none, from this sequence number on. */
  renderTerminalFrames: (object: ResponseObject, nextSequence: number) => string
  /** What is read from the database at a time. */
  charsMax: number
}

export type From = { readonly startingAfter: number; readonly signal: AbortSignal }

/** Frames behind a number, at the pace of who reads them. `left` is called once, at the end. */
export function follow(
  source: { id: string; log: EventLog },
  from: From,
  { left = () => {}, ...deps }: FollowDeps & { left?: () => void },
): Frames {
  const reader = source.log.attach(from.startingAfter)
  let attached = true
  const leave = () => {
    if (!attached) return
    attached = false
    from.signal.removeEventListener('abort', leave)
    reader.detach()
    left()
    reader.wake()
  }
  if (from.signal.aborted) leave()
  else from.signal.addEventListener('abort', leave)
  return read()

  async function* read(): Frames {
    try {
      while (attached) {
        const step = reader.read()
        if (step === 'behind') {
          const frames = await readStored(source, reader, deps)
          if (frames !== '' && attached) yield frames
        } else if (step !== null) {
          reader.moveTo(step.last)
          yield step.frames
        } else if (source.log.ended() !== null) {
          const frames = lastWords(source.log, reader, deps)
          if (frames !== '') yield frames
          return
        } else {
          await reader.news()
        }
      }
    } finally {
      leave()
    }
  }
}

/** What the ring has lost already; '' where it cannot be read just now. */
async function readStored(
  { id, log }: { id: string; log: EventLog },
  reader: LogReader,
  { store, charsMax }: FollowDeps,
): Promise<string> {
  const after = reader.position()
  const segments = await store.readLog(id, after, charsMax)
  let position = after
  let frames = ''
  for (const segment of segments) {
    if (segment.first > position + 1) break
    frames += framesBehind(segment, position)
    position = Math.max(position, segment.last)
  }
  if (position > after) reader.moveTo(position)
  else if (segments.length > 0 || log.ended() !== null) throw streamGone()
  else await reader.news()
  return frames
}

/** What only this reader gets at the end. Throws where the end is a failure. */
function lastWords(log: EventLog, reader: LogReader, { renderTerminalFrames }: FollowDeps): string {
  const end = log.ended()
  if (end?.kind === 'failed') throw end.error
  if (end?.kind !== 'broken') return ''
  return renderTerminalFrames(end.object, Math.max(log.last(), reader.position()) + 1)
}

export function streamGone(): AppError {
  return new AppError('not_found', 'The stream of this response is not kept any more.', {
    code: 'stream_expired',
  })
}
