import { AppError, toAppError } from '#lib/errors.ts'
import { type Failure, pull, type Subscriber } from '#lib/pull-iterator.ts'
import { orAfter } from '#lib/time-limit.ts'

/** What is streamed, and how it looks as frames. */
export type FrameSource<T> = {
  /** It may throw before its first item; later it may only end. */
  readonly items: AsyncIterator<T>
  /** One item as whole frames; everything that one item gives goes out in one write. */
  render(item: T): string
  /** The frames that tell of a failure once the answer has begun. */
  fail(error: AppError): string
  /** What says that a silent stream is alive; null where the items themselves do. */
  readonly life: {
    /** The frames that open the stream when it must begin before the first item. */
    open(): string
    /** A frame that only says that the stream is alive. */
    heartbeat(): string
  } | null
  /** Called when the answer begins: from now on a failure is told inside the stream. */
  commit(): void
  /** Called when the reader has gone, or reads too slowly to be waited for. */
  abandon(): void
}

export type StreamPace = { heartbeatMs: number; readerStallMs: number }

const headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
}

/**
 * A text/event-stream answer that is as fast as its reader. It begins with the first item, or with
 * `open` when that takes longer than one heartbeat; a failure before then is thrown, so that it
 * can still become an HTTP status. Reading the source waits for each write, so a slow reader holds
 * the source back and at most one item is in memory. `closing` follows the last frame.
 */
export async function streamEvents<T>(
  source: FrameSource<T>,
  { closing, ...pace }: StreamPace & { closing: string },
): Promise<Response> {
  const begun = await beginStream(source, pace)
  // Bun's direct streams are the cheapest writer there is; their types are not in the platform's.
  const direct: DirectSource = {
    type: 'direct',
    pull: (sink) => begun.pump(sink, closing),
    cancel: () => source.abandon(),
  }
  return new Response(new ReadableStream(direct), { headers })
}

/** Where frames go. `write` answers 0 when the reader has gone, a promise when it must be waited for. */
export type FrameSink = {
  write(frames: string): number | Promise<number>
  /** Everything was written. */
  end(): unknown
  /** Gives the reader up in the middle; what was not sent is thrown away. */
  close(error: Error): unknown
}

/** Waits until there is something to write, or until silence has lasted for a heartbeat. */
export async function beginStream<T>(
  source: FrameSource<T>,
  pace: StreamPace,
): Promise<{ pump(sink: FrameSink, closing: string): Promise<void> }> {
  const { life } = source
  const first = source.items.next()
  const arrived = first.then(() => true)
  const isEarly = life === null ? await arrived : await orAfter(arrived, pace.heartbeatMs, false)
  source.commit()
  const opening = isEarly || life === null ? '' : life.open()
  return {
    pump(sink, closing) {
      const writer = new ReaderWriter(source, pace, sink)
      return new Pump(source, writer, closing).run(first, opening)
    },
  }
}

type DirectSource = {
  type: 'direct'
  pull(sink: FrameSink): Promise<void>
  cancel(): void
}

/** Asks for an item, writes it, and asks for the next one once the reader has room. */
class Pump<T> implements Subscriber<T> {
  readonly #source: FrameSource<T>
  readonly #writer: ReaderWriter
  readonly #closing: string
  readonly #over = Promise.withResolvers<void>()

  constructor(source: FrameSource<T>, writer: ReaderWriter, closing: string) {
    this.#source = source
    this.#writer = writer
    this.#closing = closing
  }

  /** Ends when everything was written or the reader has gone. */
  async run(first: Promise<IteratorResult<T>>, opening: string): Promise<void> {
    try {
      await this.#writer.write(opening)
      const next = await first
      if (next.done) this.onComplete()
      else this.onNext(next.value)
    } catch (error) {
      this.onError(error)
    }
    return await this.#over.promise
  }

  onNext(item: T) {
    try {
      const written = this.#writer.write(this.#source.render(item))
      if (written === undefined) this.#askNext()
      else written.then(() => this.#askNext()).catch((error: unknown) => this.onError(error))
    } catch (error) {
      this.onError(error)
    }
  }

  onError(error: unknown) {
    this.#close({ error }).then(this.#over.resolve, this.#over.reject)
  }

  onComplete() {
    this.#close(null).then(this.#over.resolve, this.#over.reject)
  }

  #askNext() {
    if (this.#writer.isOpen) pull(this.#source.items, this)
    else this.onComplete()
  }

  async #close(failure: Failure): Promise<void> {
    const isTold = failure !== null && this.#writer.isOpen
    try {
      const failed = isTold ? this.#source.fail(toAppError(failure.error)) : ''
      await this.#writer.write(failed + this.#closing)
    } finally {
      this.#writer.close()
      void Promise.resolve(this.#source.items.return?.()).catch(() => {})
    }
  }
}

/** Writes frames, sends a heartbeat when nothing was written for a while, notes a reader's end. */
class ReaderWriter {
  readonly #source: Pick<FrameSource<unknown>, 'life' | 'abandon'>
  readonly #pace: StreamPace
  readonly #sink: FrameSink
  #open = true
  #waiting = false
  #stalled = false
  #wroteAt = performance.now()
  #timer: Timer | undefined
  #gone = Promise.withResolvers<number>()

  constructor(
    source: Pick<FrameSource<unknown>, 'life' | 'abandon'>,
    pace: StreamPace,
    sink: FrameSink,
  ) {
    this.#source = source
    this.#pace = pace
    this.#sink = sink
    if (source.life !== null) this.#timer = setTimeout(() => this.#beat(), pace.heartbeatMs)
  }

  get isOpen(): boolean {
    return this.#open
  }

  /** Gives a promise where the reader has to be waited for. */
  write(frames: string): Promise<void> | undefined {
    if (!this.#open || frames === '') return undefined
    this.#wroteAt = performance.now()
    const written = this.#sink.write(frames)
    if (typeof written !== 'number') return this.#waitForReader(written)
    if (written === 0) this.#leave()
    return undefined
  }

  close() {
    clearTimeout(this.#timer)
    this.#open = false
    // Ending would keep the connection, and what waits in it, until the reader reads again.
    if (this.#stalled) this.#sink.close(new AppError('client_closed', 'The reader does not read.'))
    else this.#sink.end()
  }

  #beat() {
    const { heartbeatMs } = this.#pace
    const { life } = this.#source
    const restMs = this.#wroteAt + heartbeatMs - performance.now()
    if (restMs <= 0 && !this.#waiting && life !== null) void this.write(life.heartbeat())
    this.#timer = setTimeout(() => this.#beat(), restMs > 0 ? restMs : heartbeatMs)
  }

  async #waitForReader(written: Promise<number>): Promise<void> {
    this.#waiting = true
    const tooLong = setTimeout(() => {
      this.#stalled = true
      this.#leave()
    }, this.#pace.readerStallMs)
    try {
      if ((await Promise.race([written, this.#gone.promise])) === 0) this.#leave()
    } catch {
      this.#leave()
    } finally {
      clearTimeout(tooLong)
      this.#waiting = false
    }
  }

  #leave() {
    if (!this.#open) return
    this.#open = false
    this.#gone.resolve(0)
    this.#source.abandon()
  }
}
