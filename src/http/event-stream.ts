import { AppError, toAppError } from '#lib/errors.ts'
import type { ByteCount, Exchange } from '#lib/exchange.ts'
import { type Failure, pull, type Subscriber } from '#lib/pull-iterator.ts'
import type { RequestContext } from '#lib/request-context.ts'
import { orAfter } from '#lib/time-limit.ts'

/** The items of a stream, and how to render them as frames. */
export type FrameSource<T, Frame = string> = {
  /** May throw before the first item; later it may only end. */
  readonly items: AsyncIterator<T>
  /** Makes whole frames of one item, or bytes, which are sent in one write. */
  readonly renderer: { push(item: T): Frame }
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
      const pump = new Pump(source, pace, { sink, closing, exchange: exchange ?? null })
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

type Client<Frame> = {
  readonly sink: FrameSink<Frame>
  /** Follows the last frame. */
  readonly closing: string
  readonly exchange: Exchange | null
}

/**
 * Pulls an item, writes it, and pulls the next one when the client can receive more. Sends heartbeats while
 * nothing is written, and detects a stalled client. One object, because each is cold in cache by the next
 * event of a slow stream.
 */
class Pump<T, Frame extends string | Uint8Array> implements Subscriber<T>, ByteCount {
  /** Counted by the exchange when it ends. */
  bytesOut = 0
  readonly #source: FrameSource<T, Frame>
  readonly #items: AsyncIterator<T>
  readonly #renderer: FrameSource<T, Frame>['renderer']
  readonly #pace: StreamPace
  readonly #client: Client<Frame>
  readonly #sink: FrameSink<Frame>
  readonly #over = Promise.withResolvers<void>()
  /** Resolves when everything was written or the client disconnected. */
  readonly over = this.#over.promise
  #isOpen = true
  #isWaiting = false
  #isStalled = false
  #wroteAtMs = performance.now()
  #timer: Timer | undefined
  readonly #abandoned = Promise.withResolvers<number>()

  constructor(source: FrameSource<T, Frame>, pace: StreamPace, client: Client<Frame>) {
    this.#source = source
    this.#items = source.items
    this.#renderer = source.renderer
    this.#pace = pace
    this.#client = client
    this.#sink = client.sink
    if (client.exchange !== null) client.exchange.body = this
    if (source.keepAlive !== null) this.#timer = setTimeout(() => this.#beat(), pace.heartbeatMs)
  }

  async open(opening: string, first: Promise<IteratorResult<T>>): Promise<void> {
    try {
      await this.#write(opening)
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
      const written = this.#write(this.#renderer.push(item))
      if (written === undefined) this.#pullNext()
      else written.then(() => this.#pullNext()).catch((error: unknown) => this.onError(error))
    } catch (error) {
      this.onError(error)
    }
  }

  onError(error: unknown) {
    this.#end({ error }).then(this.#over.resolve, this.#over.reject)
  }

  onComplete() {
    this.#end(null).then(this.#over.resolve, this.#over.reject)
  }

  #pullNext() {
    if (this.#isOpen) pull(this.#items, this)
    else this.onComplete()
  }

  /** Returns a promise while the buffer of the client is full. */
  #write(frames: Frame | string): Promise<void> | undefined {
    if (!this.#isOpen || frames.length === 0) return undefined
    this.#wroteAtMs = performance.now()
    const written = this.#sink.write(frames)
    if (typeof written !== 'number') return this.#waitForClient(written)
    if (written === 0) this.#abandon()
    else this.bytesOut += written
    return undefined
  }

  async #end(failure: Failure): Promise<void> {
    const isReported = failure !== null && this.#isOpen
    let failed: string | null = ''
    try {
      if (isReported) failed = this.#source.fail(toAppError(failure.error))
      if (failed !== null) await this.#write(failed + this.#client.closing)
    } finally {
      this.#close(failed === null)
      void Promise.resolve(this.#items.return?.()).catch(() => {})
    }
  }

  #close(isCutOff: boolean) {
    clearTimeout(this.#timer)
    this.#isOpen = false
    // Ending the stream in order would keep the connection and its buffer until the client reads.
    if (this.#isStalled)
      this.#sink.close(new AppError('client_closed', 'The client stopped reading.'))
    else if (isCutOff)
      this.#sink.close(new AppError('upstream_truncated', 'The response was cut off.'))
    else this.#sink.end()
    this.#client.exchange?.end()
  }

  #beat() {
    const { heartbeatMs } = this.#pace
    const { keepAlive } = this.#source
    const remainingMs = this.#wroteAtMs + heartbeatMs - performance.now()
    if (remainingMs <= 0 && !this.#isWaiting && keepAlive !== null)
      void this.#write(keepAlive.heartbeat())
    this.#timer = setTimeout(() => this.#beat(), remainingMs > 0 ? remainingMs : heartbeatMs)
  }

  async #waitForClient(written: Promise<number>): Promise<void> {
    this.#isWaiting = true
    const stallTimer = setTimeout(() => {
      this.#isStalled = true
      this.#abandon()
    }, this.#pace.readerStallMs)
    try {
      const bytes = await Promise.race([written, this.#abandoned.promise])
      if (bytes === 0) this.#abandon()
      else this.bytesOut += bytes
    } catch {
      this.#abandon()
    } finally {
      clearTimeout(stallTimer)
      this.#isWaiting = false
    }
  }

  #abandon() {
    if (!this.#isOpen) return
    this.#isOpen = false
    const { exchange } = this.#client
    if (exchange !== null) exchange.wasAbandoned = true
    this.#abandoned.resolve(0)
    this.#source.abandon()
  }
}
