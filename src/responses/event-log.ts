import type { AppError } from '#lib/errors.ts'
import type { UnwrittenFrames } from './journal-entry.ts'
import { framesAfter, joinSegments } from './log-segment.ts'
import type { ResponseObject } from './response.ts'
import type { LogSegment } from './stored.ts'

/**
 * `complete`: the log holds the terminal frames. `truncated`: each reader renders its own from this
 * object; `closing` are the frames after the log that end its open item. `failed`: readers receive this
 * error.
 */
export type LogEnd =
  | { readonly kind: 'complete' }
  | { readonly kind: 'truncated'; readonly object: ResponseObject; readonly closing: string }
  | { readonly kind: 'failed'; readonly error: AppError }

export type LogReader = {
  /** The sequence number of the last frame read. */
  readonly position: number
  /** The log has these new frames; null: others than new frames, or its end. May read at once. */
  changed(added: LogSegment | null): void
}

/** New frames become a segment of the ring buffer at this part of its size. */
const segmentsPerBuffer = 16

/**
 * The in-memory tail of one response's frames: a ring buffer of the newest segments with any number
 * of readers, each at its own position. Evicted segments are read from the database. A class, and flat:
 * each object that a frame touches is cold in cache by the next frame of a slow stream, so frames are
 * collected as text, and become a segment when they are taken for the database or read again.
 */
export class EventLog implements UnwrittenFrames {
  readonly #charsMax: number
  /** The newest frames, after those of the segments. */
  #newFrames = ''
  #newChars = 0
  #newFirst = 0
  #last: number
  #chars = 0
  #isHeld: boolean
  /** Replaced, not modified: a reader may detach while the others are notified. */
  #readers: readonly LogReader[] = []
  /** The reader, if it is the only one: the list would be cold in cache. */
  #onlyReader: LogReader | null = null
  #untakenChars = 0
  readonly #segments: LogSegment[] = []
  /** The sequence numbers of the last frames that were taken and are persisted. */
  #taken: number
  #persisted: number
  #keepsForReaders = false
  #end: LogEnd | null = null
  #resolveSpace: (() => void) | undefined

  constructor(options: {
    last: number
    charsMax: number
    /** Readers get nothing until a frame is persisted, or none will be. */
    isHeld?: boolean
  }) {
    this.#charsMax = options.charsMax
    this.#last = options.last
    this.#taken = options.last
    this.#persisted = options.last
    this.#isHeld = options.isHeld ?? false
  }

  /** The sequence number of the newest frame. */
  get last(): number {
    return this.#last
  }

  get isHeld(): boolean {
    return this.#isHeld
  }

  get ended(): LogEnd | null {
    return this.#end
  }

  get readers(): number {
    return this.#readers.length
  }

  get untakenChars(): number {
    return this.#untakenChars
  }

  /** Half of the ring buffer waits for the database. */
  get isUrgent(): boolean {
    return this.#untakenChars > this.#charsMax / 2
  }

  append(added: LogSegment): void {
    const chars = added.frames.length
    if (added.first !== this.#last + 1 || this.#newFirst <= this.#taken) this.#seal()
    if (this.#newChars === 0) this.#newFirst = added.first
    this.#newFrames += added.frames
    this.#newChars += chars
    this.#chars += chars
    if (added.last > this.#taken) this.#untakenChars += chars
    this.#last = added.last
    if (!this.#isHeld) this.#notify(added)
    if (this.#newChars > this.#charsMax / segmentsPerBuffer) this.#seal()
    if (this.#chars > this.#charsMax) this.#evict()
  }

  take(): LogSegment | null {
    this.#seal()
    let at = this.#segments.length
    while (at > 0 && (this.#segments[at - 1]?.first ?? 0) > this.#taken) at -= 1
    this.#taken = this.#last
    this.#untakenChars = 0
    return joinSegments(this.#segments.slice(at))
  }

  #seal(): void {
    if (this.#newChars === 0) return
    this.#segments.push({ first: this.#newFirst, last: this.#last, frames: this.#newFrames })
    this.#newFrames = ''
    this.#newChars = 0
  }

  /** Frames up to this number are in the database and may be evicted. */
  persistedUpTo(upTo: number): void {
    this.#persisted = Math.max(this.#persisted, upTo)
    this.#taken = Math.max(this.#taken, upTo)
    this.#evict()
    this.#release()
  }

  /** Nothing is persisted from now on: segments stay until every reader has read them. */
  keepForReaders(): void {
    this.#keepsForReaders = true
    this.#evict()
    this.#release()
  }

  isFull(): boolean {
    if (this.#chars <= this.#charsMax) return false
    const oldest = this.#segments[0]
    return oldest !== undefined && this.#isNeeded(oldest)
  }

  /** Resolves when the ring buffer has space. For one waiter. */
  space(): Promise<void> {
    if (!this.isFull()) return Promise.resolve()
    return new Promise<void>((resolve) => {
      this.#resolveSpace = resolve
    })
  }

  /** The first end counts. */
  end(given: LogEnd): void {
    this.#end ??= given
    this.#isHeld = false
    this.#notify(null)
  }

  attach(reader: LogReader): void {
    this.#setReaders([...this.#readers, reader])
  }

  detach(reader: LogReader): void {
    this.#setReaders(this.#readers.filter((other) => other !== reader))
    this.#evict()
  }

  #setReaders(readers: readonly LogReader[]): void {
    this.#readers = readers
    this.#onlyReader = readers.length === 1 ? (readers[0] ?? null) : null
  }

  /** A reader has a new position. */
  readerMoved(): void {
    if (this.#keepsForReaders) this.#evict()
  }

  /** The frames after a position; `evicted` if they left the ring buffer; null if there are none. */
  read(after: number): { frames: string; last: number } | 'evicted' | null {
    if (this.#isHeld || after >= this.#last) return null
    this.#seal()
    const segments = this.#segments
    const first = segments[0]
    if (first === undefined || first.first > after + 1) return 'evicted'
    let at = segments.length - 1
    while (at > 0 && (segments[at - 1]?.last ?? after) > after) at -= 1
    let frames = ''
    for (; at < segments.length; at++) frames += framesAfter(segments[at] ?? first, after)
    return { frames, last: this.#last }
  }

  #isNeeded(segment: LogSegment): boolean {
    if (segment.last <= this.#persisted) return false
    return !this.#keepsForReaders || this.#readers.some((reader) => reader.position < segment.last)
  }

  #evict(): void {
    // The newest segment stays regardless of its size: current readers read it next.
    while (this.#chars > this.#charsMax && this.#segments.length > 1 && !this.isFull()) {
      this.#chars -= this.#segments.shift()?.frames.length ?? 0
    }
    if (!this.isFull()) this.#resolveSpace?.()
  }

  #release(): void {
    if (!this.#isHeld) return
    this.#isHeld = false
    this.#notify(null)
  }

  #notify(added: LogSegment | null): void {
    if (this.#onlyReader !== null) this.#onlyReader.changed(added)
    else for (const reader of this.#readers) reader.changed(added)
  }
}
