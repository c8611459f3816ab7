import type { AppError } from '#lib/errors.ts'
import { framesBehind } from './log-segment.ts'
import type { ResponseObject } from './response.ts'
import type { LogSegment } from './stored.ts'

/**
 * The frames of one response, as far as they are in memory: a ring of the newest, from which any
 * number of readers read at their own pace. What has left it is in the database.
 */
export type EventLog = {
  /** The number of the newest frame. */
  last(): number
  append(segment: LogSegment): void
  /** Up to this number the frames can be read from the database, so that they may leave the ring. */
  keptUpTo(last: number): void
  /** From now on nothing reaches the database: frames stay until all who read have read them. */
  keepForReaders(): void
  isFull(): boolean
  /** Resolves when the ring has room. One may wait for it. */
  room(): Promise<void>
  end(how: LogEnd): void
  ended(): LogEnd | null
  attach(after: number): LogReader
  readers(): number
}

/**
 * `complete`: the terminal frames are in the log. `broken`: they are not, and each reader gets its
 * own, made from this object. `failed`: the readers are told so by an error.
 */
export type LogEnd =
  | { readonly kind: 'complete' }
  | { readonly kind: 'broken'; readonly object: ResponseObject }
  | { readonly kind: 'failed'; readonly error: AppError }

export type LogReader = {
  /** The number of the last frame that was read. */
  position(): number
  moveTo(position: number): void
  /** What follows the position, or `behind` where that has left the ring; null: nothing yet. */
  read(): { readonly frames: string; readonly last: number } | 'behind' | null
  /** Resolves when there may be something new, and when somebody wakes the reader. */
  news(): Promise<void>
  wake(): void
  detach(): void
}

export function createEventLog(options: { last: number; charsMax: number }): EventLog {
  const segments: LogSegment[] = []
  const readers = new Set<LogReader>()
  let { last } = options
  let chars = 0
  let kept = last
  let forReaders = false
  let how: LogEnd | null = null
  let makeRoom: (() => void) | undefined

  const isNeeded = (segment: LogSegment) => {
    if (segment.last <= kept) return false
    return !forReaders || [...readers].some((reader) => reader.position() < segment.last)
  }
  const isFull = () =>
    chars > options.charsMax && segments[0] !== undefined && isNeeded(segments[0])
  const trim = () => {
    // The newest one stays, however long it is: everybody who keeps up reads it now.
    while (chars > options.charsMax && segments.length > 1 && !isFull()) {
      chars -= segments.shift()?.frames.length ?? 0
    }
    if (isFull()) return
    makeRoom?.()
    makeRoom = undefined
  }
  const wakeAll = () => {
    for (const reader of readers) reader.wake()
  }
  const readBehind = (after: number) => {
    if (after >= last) return null
    const first = segments[0]
    if (first === undefined || first.first > after + 1) return 'behind' as const
    let at = segments.length - 1
    while (at > 0 && (segments[at - 1]?.last ?? after) > after) at -= 1
    let frames = ''
    for (; at < segments.length; at++) frames += framesBehind(segments[at] ?? first, after)
    return { frames, last }
  }

  return {
    last: () => last,
    append(segment) {
      segments.push(segment)
      chars += segment.frames.length
      last = segment.last
      trim()
      wakeAll()
    },
    keptUpTo(upTo) {
      kept = Math.max(kept, upTo)
      trim()
    },
    keepForReaders() {
      forReaders = true
      trim()
    },
    isFull,
    room() {
      if (!isFull()) return Promise.resolve()
      return new Promise((resolve) => {
        makeRoom = resolve
      })
    },
    end(given) {
      how ??= given
      wakeAll()
    },
    ended: () => how,
    attach(after) {
      const reader = createReader(after, readBehind, {
        moved: () => forReaders && trim(),
        detach: () => readers.delete(reader) && trim(),
      })
      readers.add(reader)
      return reader
    },
    readers: () => readers.size,
  }
}

function createReader(
  after: number,
  readBehind: (after: number) => ReturnType<LogReader['read']>,
  log: { moved(): void; detach(): void },
): LogReader {
  let position = after
  let woken = false
  let wakeUp: (() => void) | undefined
  return {
    position: () => position,
    moveTo(to) {
      position = to
      log.moved()
    },
    read: () => readBehind(position),
    news() {
      if (woken) {
        woken = false
        return Promise.resolve()
      }
      return new Promise((resolve) => {
        wakeUp = resolve
      })
    },
    wake() {
      if (wakeUp === undefined) {
        woken = true
        return
      }
      wakeUp()
      wakeUp = undefined
    },
    detach: log.detach,
  }
}
