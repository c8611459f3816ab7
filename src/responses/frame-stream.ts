import { jitteredBackoffMs } from '#lib/backoff.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import { PullIterator } from '#lib/pull-iterator.ts'
import type { EventLog, LogReader } from './event-log.ts'
import { countFrames, framesAfter } from './log-segment.ts'
import type { ResponseObject } from './response.ts'
import type { ResponseStore } from './store.ts'
import type { LogSegment } from './stored.ts'

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
export type Frames = AsyncIterableIterator<string, void>

type FrameSource = { readonly id: string; readonly log: EventLog }

/** Where a stream starts; the signal ends it. */
export type FrameRange = { readonly startingAfter: number; readonly signal: AbortSignal }

const outageBackoff = { firstMs: 100, maxMs: 1_000 }

/** Streams the frames after a sequence number at the reader's pace. `onDetach` is called once. */
export function streamFrames(
  source: FrameSource,
  range: FrameRange,
  { onDetach = () => {}, ...deps }: FrameStreamDeps & { onDetach?: () => void },
): Frames {
  return new FrameStream(source, range, { ...deps, onDetach })
}

/** A reader of a log. New frames that are waited for are delivered at once, without a promise. */
class FrameStream extends PullIterator<string> implements LogReader {
  position: number
  readonly #source: FrameSource
  readonly #log: EventLog
  readonly #signal: AbortSignal
  readonly #deps: FrameStreamDeps & { onDetach(): void }
  readonly #onAbort = () => this.#leave()
  #isAttached = true
  /** Evicted frames are being read from the database. */
  #isReading = false
  /** The log may have changed since that read began. */
  #isChanged = false

  constructor(
    source: FrameSource,
    { startingAfter, signal }: FrameRange,
    deps: FrameStreamDeps & { onDetach(): void },
  ) {
    super()
    this.position = startingAfter
    this.#source = source
    this.#log = source.log
    this.#signal = signal
    this.#deps = deps
    source.log.attach(this)
    if (signal.aborted) this.#detach()
    else signal.addEventListener('abort', this.#onAbort)
  }

  changed(added: LogSegment | null): void {
    const isNext = added !== null && added.first === this.position + 1
    if (isNext && this.isPending && !this.#isReading) {
      this.position = added.last
      this.emit(added.frames)
    } else {
      this.#isChanged = true
      this.#deliver()
    }
  }

  moveTo(position: number): void {
    this.position = position
    this.#log.readerMoved()
  }

  protected onPull() {
    const log = this.#log
    const hasFrames = !log.isHeld && log.last > this.position
    if (hasFrames || log.ended !== null || !this.#isAttached) {
      queueMicrotask(() => this.#deliver())
    }
  }

  return(): Promise<IteratorResult<string, undefined>> {
    this.#leave()
    return Promise.resolve({ done: true, value: undefined })
  }

  #deliver() {
    if (!this.isPending || this.#isReading) return
    if (!this.#isAttached) {
      this.emitEnd(null)
      return
    }
    const step = this.#log.read(this.position)
    if (step === 'evicted') void this.#readStored()
    else if (step !== null) {
      this.moveTo(step.last)
      this.emit(step.frames)
    } else if (this.#log.ended !== null) this.#end()
  }

  async #readStored(): Promise<void> {
    this.#isReading = true
    this.#isChanged = false
    const before = this.position
    let frames = ''
    try {
      frames = await this.#throughOutage(() => readStored(this.#source, this, this.#deps))
    } catch (error) {
      this.#detach()
      this.emitEnd({ error })
      return
    } finally {
      this.#isReading = false
    }
    if (frames !== '' && this.#isAttached) this.emit(frames)
    else if (this.#isChanged || this.position > before || !this.#isAttached) this.#deliver()
  }

  /** Repeats what fails for lack of the database; '' after the reader has left. */
  async #throughOutage(step: () => Promise<string>): Promise<string> {
    const startedAt = performance.now()
    for (let failures = 1; ; failures++) {
      try {
        return await step()
      } catch (error) {
        if (!this.#isAttached) return ''
        const isOver = performance.now() - startedAt >= this.#deps.outageMaxMs
        if (isOver || toAppError(error).kind !== 'service_unavailable') throw error
        await Bun.sleep(jitteredBackoffMs(failures, outageBackoff))
      }
    }
  }

  #end() {
    this.#detach()
    try {
      const frames = terminalFrames(this.#log, this.position, this.#deps)
      if (frames === '') this.emitEnd(null)
      else this.emit(frames)
    } catch (error) {
      this.emitEnd({ error })
    }
  }

  #leave() {
    this.#detach()
    this.#deliver()
  }

  #detach() {
    if (!this.#isAttached) return
    this.#isAttached = false
    this.#signal.removeEventListener('abort', this.#onAbort)
    this.#log.detach(this)
    this.#deps.onDetach()
  }
}

/** Reads evicted frames from the database; '' if they are not there yet. */
async function readStored(
  { id, log }: FrameSource,
  reader: FrameStream,
  { store, charsMax }: FrameStreamDeps,
): Promise<string> {
  const after = reader.position
  const segments = await store.readLog(id, after, charsMax)
  let position = after
  let frames = ''
  for (const segment of segments) {
    if (segment.first > position + 1) break
    frames += framesAfter(segment, position)
    position = Math.max(position, segment.last)
  }
  if (position > after) reader.moveTo(position)
  else if (segments.length > 0 || log.ended !== null) throw streamExpired()
  return frames
}

/**
 * Terminal frames for this reader only; '' if the log holds them. Throws for a failed log. A reader that
 * is ahead of the log has received frames that were never logged, and gets no others of that item.
 */
function terminalFrames(
  log: EventLog,
  position: number,
  { renderTerminalFrames }: FrameStreamDeps,
): string {
  const end = log.ended
  if (end?.kind === 'failed') throw end.error
  if (end?.kind !== 'truncated') return ''
  const closing = position > log.last ? '' : end.closing
  const next = Math.max(log.last, position) + 1 + countFrames(closing)
  return closing + renderTerminalFrames(end.object, next)
}

export function streamExpired(): AppError {
  return new AppError('not_found', 'The stream of this response has expired.', {
    code: 'stream_expired',
  })
}
