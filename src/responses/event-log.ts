import type { AppError } from '#lib/errors.ts'
import { framesAfter } from './log-segment.ts'
import type { ResponseObject } from './response.ts'
import type { LogSegment } from './stored.ts'

export type EventLog = ReturnType<typeof createEventLog>
export type LogReader = ReturnType<typeof createReader>

/**
 * `complete`: the log holds the terminal frames. `truncated`: each reader renders its own from this
 * object; `closing` are the frames after the log that end its open item. `failed`: readers receive this
 * error.
 */
export type LogEnd =
  | { readonly kind: 'complete' }
  | { readonly kind: 'truncated'; readonly object: ResponseObject; readonly closing: string }
  | { readonly kind: 'failed'; readonly error: AppError }

/**
 * The in-memory tail of one response's frames: a ring buffer of the newest segments with any number
 * of readers, each at its own position. Evicted segments are read from the database.
 */
export function createEventLog(options: {
  last: number
  charsMax: number
  /** Readers get nothing until a frame is persisted, or none will be. */
  isHeld?: boolean
}) {
  const segments: LogSegment[] = []
  const readers = new Set<LogReader>()
  let { last, isHeld = false } = options
  let chars = 0
  let persisted = last
  let keepsForReaders = false
  let how: LogEnd | null = null
  let resolveSpace: (() => void) | undefined

  const isNeeded = (segment: LogSegment) => {
    if (segment.last <= persisted) return false
    return !keepsForReaders || [...readers].some((reader) => reader.position() < segment.last)
  }
  const isFull = () =>
    chars > options.charsMax && segments[0] !== undefined && isNeeded(segments[0])
  const evict = () => {
    // The newest segment stays regardless of its size: current readers read it next.
    while (chars > options.charsMax && segments.length > 1 && !isFull()) {
      chars -= segments.shift()?.frames.length ?? 0
    }
    if (isFull()) return
    resolveSpace?.()
  }
  const wakeAll = () => {
    for (const reader of readers) reader.wake()
  }
  const release = () => {
    if (!isHeld) return
    isHeld = false
    wakeAll()
  }
  const readAfter = (after: number) => {
    if (isHeld || after >= last) return null
    const first = segments[0]
    if (first === undefined || first.first > after + 1) return 'evicted' as const
    let at = segments.length - 1
    while (at > 0 && (segments[at - 1]?.last ?? after) > after) at -= 1
    let frames = ''
    for (; at < segments.length; at++) frames += framesAfter(segments[at] ?? first, after)
    return { frames, last }
  }

  return {
    /** The sequence number of the newest frame. */
    last: () => last,
    append(segment: LogSegment) {
      segments.push(segment)
      chars += segment.frames.length
      last = segment.last
      evict()
      wakeAll()
    },
    isHeld: () => isHeld,
    /** Frames up to this number are in the database and may be evicted. */
    persistedUpTo(upTo: number) {
      persisted = Math.max(persisted, upTo)
      evict()
      release()
    },
    /** Nothing is persisted from now on: segments stay until every reader has read them. */
    keepForReaders() {
      keepsForReaders = true
      evict()
      release()
    },
    isFull,
    /** Resolves when the ring buffer has space. For one waiter. */
    space() {
      if (!isFull()) return Promise.resolve()
      return new Promise<void>((resolve) => {
        resolveSpace = resolve
      })
    },
    end(given: LogEnd) {
      how ??= given
      isHeld = false
      wakeAll()
    },
    ended: () => how,
    attach(after: number) {
      const reader = createReader(after, readAfter, {
        moved: () => keepsForReaders && evict(),
        detach: () => readers.delete(reader) && evict(),
      })
      readers.add(reader)
      return reader
    },
    readers: () => readers.size,
  }
}

function createReader(
  after: number,
  readAfter: (after: number) => { frames: string; last: number } | 'evicted' | null,
  log: { moved(): void; detach(): void },
) {
  let position = after
  let isWoken = false
  let resolveChanged: (() => void) | undefined
  return {
    /** The sequence number of the last frame read. */
    position: () => position,
    moveTo(to: number) {
      position = to
      log.moved()
    },
    /** The frames after the position; `evicted` if they left the ring buffer; null if there are none. */
    read: () => readAfter(position),
    /** Resolves when the log may have changed, or on `wake`. */
    changed() {
      if (isWoken) {
        isWoken = false
        return Promise.resolve()
      }
      return new Promise<void>((resolve) => {
        resolveChanged = resolve
      })
    },
    wake() {
      if (resolveChanged === undefined) {
        isWoken = true
        return
      }
      resolveChanged()
      resolveChanged = undefined
    },
    detach: log.detach,
  }
}
