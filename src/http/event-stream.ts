import { AppError, toAppError } from '#lib/errors.ts'
import type { Exchange } from '#lib/exchange.ts'
import { type Failure, pull, type Subscriber } from '#lib/pull-iterator.ts'
import type { RequestContext } from '#lib/request-context.ts'
import { orAfter } from '#lib/time-limit.ts'

/** The items of a stream, and how to render them as frames. */
export type FrameSource<T, Frame = string> = {
  /** May throw before the first item; later it may only end. */
  readonly items: AsyncIterator<T>
  /** One item as whole frames, or bytes, which are sent in one write. */
  render(item: T): Frame
  /** The frames of a failure after the response has started; null cuts the response off. */
  fail(error: AppError): string | null
  /** Keep-alive frames; null if the items themselves keep the stream alive. */
  readonly keepAlive: {
    /** The frames that open the stream if it has to start before the first item. */
    open(): string
    heartbeat(): string
  } | null
  /** Called when the client disconnects, or stalls for longer than `readerStallMs`. */
  abandon(): void
}

export type StreamPace = { heartbeatMs: number; readerStallMs: number }

const headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
}

/**
 * A text/event-stream response with backpressure. It starts with the first item, or with `open` if
 * that takes longer than one heartbeat; a failure before the start is thrown and becomes an HTTP
 * status. Each read of the source waits for the previous write, so a slow client slows the source
 * and at most one item is in memory. `closing` follows the last frame, and then the exchange ends.
 */
export async function streamEvents<T, Frame extends string | Uint8Array = string>(
  source: FrameSource<T, Frame>,
  {
    closing,
    context,
    contentType,
    ...pace
  }: StreamPace & { closing: string; context: StreamContext; contentType?: string },
): Promise<Response> {
  const begun = await beginStream(source, pace)
  const { exchange, signal } = context
  if (exchange !== undefined) {
    exchange.isOpen = true
    // A client that disconnects before the body is read ends neither the stream nor its exchange.
    signal.addEventListener('abort', () => exchange.abandon(), { once: true })
  }
  // Bun's direct streams are the cheapest writer; the platform's types do not have them.
  const direct: DirectSource<Frame> = {
    type: 'direct',
    pull: (sink) => begun.pump(sink, closing, exchange),
    cancel() {
      source.abandon()
      exchange?.abandon()
    },
  }
  const own = contentType === undefined ? headers : { ...headers, 'content-type': contentType }
  return new Response(new ReadableStream(direct), { headers: own })
}

/** Of the request. */
type StreamContext = Pick<RequestContext, 'exchange' | 'signal'>

/** `write` returns 0 after the client disconnected, and a promise while its buffer is full. */
export type FrameSink<Frame = string> = {
  write(frames: Frame | string): number | Promise<number>
  end(): unknown
  /** Closes the connection and drops what was not sent. */
  close(error: Error): unknown
}

/** Waits for the first item, at most one heartbeat. */
export async function beginStream<T, Frame extends string | Uint8Array = string>(
  source: FrameSource<T, Frame>,
  pace: StreamPace,
): Promise<{ pump(sink: FrameSink<Frame>, closing: string, exchange?: Exchange): Promise<void> }> {
  const { keepAlive } = source
  const pending = source.items.next()
  const first = keepAlive === null ? await pending : await orAfter(pending, pace.heartbeatMs, null)
  return {
    pump(sink, closing, exchange) {
      const writer = new ClientWriter(source, pace, { sink, exchange: exchange ?? null })
      const pump = new Pump(source, writer, closing)
      // What has arrived is written in this turn, so that it is sent together with the head.
      if (first !== null) pump.take(first)
      else void pump.open(keepAlive?.open() ?? '', pending)
      return pump.over
    },
  }
}

type DirectSource<Frame> = {
  type: 'direct'
  pull(sink: FrameSink<Frame>): Promise<void>
  cancel(): void
}

/** Pulls an item, writes it, and pulls the next one when the client can receive more. */
class Pump<T, Frame extends string | Uint8Array> implements Subscriber<T> {
  readonly #source: FrameSource<T, Frame>
  readonly #writer: ClientWriter<Frame>
  readonly #closing: string
  readonly #over = Promise.withResolvers<void>()
  /** Resolves when everything was written or the client disconnected. */
  readonly over = this.#over.promise

  constructor(source: FrameSource<T, Frame>, writer: ClientWriter<Frame>, closing: string) {
    this.#source = source
    this.#writer = writer
    this.#closing = closing
  }

  async open(opening: string, first: Promise<IteratorResult<T>>): Promise<void> {
    try {
      await this.#writer.write(opening)
      this.take(await first)
    } catch (error) {
      this.onError(error)
    }
  }

  take(next: IteratorResult<T>) {
    if (next.done) this.onComplete()
    else this.onNext(next.value)
  }

  onNext(item: T) {
    try {
      const written = this.#writer.write(this.#source.render(item))
      if (written === undefined) this.#pullNext()
      else written.then(() => this.#pullNext()).catch((error: unknown) => this.onError(error))
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

  #pullNext() {
    if (this.#writer.isOpen) pull(this.#source.items, this)
    else this.onComplete()
  }

  async #close(failure: Failure): Promise<void> {
    const isReported = failure !== null && this.#writer.isOpen
    let failed: string | null = ''
    try {
      if (isReported) failed = this.#source.fail(toAppError(failure.error))
      if (failed !== null) await this.#writer.write(failed + this.#closing)
    } finally {
      this.#writer.close(failed === null)
      void Promise.resolve(this.#source.items.return?.()).catch(() => {})
    }
  }
}

/** Writes frames, sends heartbeats while nothing is written, and detects a stalled client. */
class ClientWriter<Frame extends string | Uint8Array> {
  readonly #source: Pick<FrameSource<unknown>, 'keepAlive' | 'abandon'>
  readonly #pace: StreamPace
  readonly #sink: FrameSink<Frame>
  readonly #exchange: Exchange | null
  #open = true
  #waiting = false
  #stalled = false
  #wroteAt = performance.now()
  #timer: Timer | undefined
  #abandoned = Promise.withResolvers<number>()

  constructor(
    source: Pick<FrameSource<unknown>, 'keepAlive' | 'abandon'>,
    pace: StreamPace,
    { sink, exchange }: { sink: FrameSink<Frame>; exchange: Exchange | null },
  ) {
    this.#source = source
    this.#pace = pace
    this.#sink = sink
    this.#exchange = exchange
    if (source.keepAlive !== null) this.#timer = setTimeout(() => this.#beat(), pace.heartbeatMs)
  }

  get isOpen(): boolean {
    return this.#open
  }

  /** Returns a promise while the buffer of the client is full. */
  write(frames: Frame | string): Promise<void> | undefined {
    if (!this.#open || frames.length === 0) return undefined
    this.#wroteAt = performance.now()
    const written = this.#sink.write(frames)
    if (typeof written !== 'number') return this.#waitForClient(written)
    if (written === 0) this.#abandon()
    else this.#exchange?.addBytesOut(written)
    return undefined
  }

  close(isCutOff = false) {
    clearTimeout(this.#timer)
    this.#open = false
    // Ending the stream in order would keep the connection and its buffer until the client reads.
    if (this.#stalled)
      this.#sink.close(new AppError('client_closed', 'The client stopped reading.'))
    else if (isCutOff)
      this.#sink.close(new AppError('upstream_truncated', 'The response was cut off.'))
    else this.#sink.end()
    this.#exchange?.end()
  }

  #beat() {
    const { heartbeatMs } = this.#pace
    const { keepAlive } = this.#source
    const remainingMs = this.#wroteAt + heartbeatMs - performance.now()
    if (remainingMs <= 0 && !this.#waiting && keepAlive !== null)
      void this.write(keepAlive.heartbeat())
    this.#timer = setTimeout(() => this.#beat(), remainingMs > 0 ? remainingMs : heartbeatMs)
  }

  async #waitForClient(written: Promise<number>): Promise<void> {
    this.#waiting = true
    const stallTimer = setTimeout(() => {
      this.#stalled = true
      this.#abandon()
    }, this.#pace.readerStallMs)
    try {
      const bytes = await Promise.race([written, this.#abandoned.promise])
      if (bytes === 0) this.#abandon()
      else this.#exchange?.addBytesOut(bytes)
    } catch {
      this.#abandon()
    } finally {
      clearTimeout(stallTimer)
      this.#waiting = false
    }
  }

  #abandon() {
    if (!this.#open) return
    this.#open = false
    if (this.#exchange !== null) this.#exchange.wasAbandoned = true
    this.#abandoned.resolve(0)
    this.#source.abandon()
  }
}
