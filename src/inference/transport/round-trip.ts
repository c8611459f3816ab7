import type { Chunk, UpstreamHttpResponse } from '#inference/transport.ts'
import type { CancelSignal } from '#lib/cancellation.ts'
import { AppError } from '#lib/errors.ts'
import { ChunkQueue } from './chunk-queue.ts'
import type { Connection, ConnectionOwner } from './connection.ts'
import { decodeContent } from './content-decoding.ts'
import { type BodyReader, wholeChunk } from './http1-body.ts'
import type { RenderedRequest } from './http1-request.ts'
import { ResponseParser } from './http1-response.ts'
import { unreachable } from './open-connection.ts'

export type RoundTripOptions = {
  readonly signal: CancelSignal
  readonly headerBytesMax: number
  readonly bufferBytesMax: number
  /** Called with the connection when the response is complete and the connection reusable. */
  readonly release: (connection: Connection) => void
}

/**
 * Sends one request over a free connection. Resolves with the response once its head is complete; with
 * null when a reused connection was lost before any byte of a response, which means that it was stale.
 * Throws `signal.reason` or an `AppError`.
 */
export function sendOver(
  connection: Connection,
  request: RenderedRequest,
  options: RoundTripOptions,
): Promise<UpstreamHttpResponse | null> {
  const roundTrip = new RoundTrip(connection, options)
  roundTrip.start(request)
  return roundTrip.response
}

/** A request, and the queue of the chunks of its response. */
class RoundTrip extends ChunkQueue implements ConnectionOwner {
  readonly response: Promise<UpstreamHttpResponse | null>
  readonly #resolvers: PromiseWithResolvers<UpstreamHttpResponse | null>
  readonly #options: RoundTripOptions
  readonly #parser: ResponseParser
  readonly #onAbort = () => this.#cancel()
  /** Null once this round trip has ended; the connection may then serve another one. */
  connection: Connection | null
  /** Whether any byte of the response arrived. */
  #hasBytes = false
  /** Set when the head is complete. */
  #body: BodyReader | null = null
  #isAtChunk = false

  constructor(connection: Connection, options: RoundTripOptions) {
    super({ bytesMax: options.bufferBytesMax })
    this.#resolvers = Promise.withResolvers()
    this.response = this.#resolvers.promise
    this.#options = options
    this.#parser = new ResponseParser(options)
    this.connection = connection
    connection.setOwner(this)
  }

  start(request: RenderedRequest) {
    const { signal } = this.#options
    if (signal.aborted) return this.#cancel()
    signal.addEventListener('abort', this.#onAbort, { once: true })
    this.connection?.send(request)
  }

  received(bytes: Buffer) {
    if (this.connection === null) return
    const chunk = this.#isAtChunk ? wholeChunk(bytes) : null
    if (chunk !== null) this.push(chunk)
    else if (this.#body === null) this.#receivedHead(bytes)
    else this.#receivedBody(this.#body, this.#body.push(bytes, 0))
  }

  #receivedHead(bytes: Buffer) {
    this.#hasBytes = true
    const chunk = this.#parser.push(bytes)
    const { body, failure } = this.#parser
    if (body !== null) {
      this.#body = body
      this.#resolveHead(body.complete ? chunk : null)
      this.#receivedBody(body, chunk)
    } else if (failure !== null) {
      this.stopSource()
      this.#fail(failure)
    }
  }

  #receivedBody(body: BodyReader, chunk: Chunk | null) {
    this.#isAtChunk = body.isAtChunk
    if (chunk !== null) this.push(chunk)
    if (body.complete) this.#complete()
    else if (body.failure !== null) {
      this.stopSource()
      this.#fail(body.failure)
    }
  }

  lost(cause: Error | null) {
    const connection = this.#end()
    if (this.#body !== null) {
      if (cause === null && this.#body.endsWithConnection) this.complete()
      else this.#fail(truncated(cause))
    } else if (connection?.reused && !this.#hasBytes) {
      this.#resolvers.resolve(null)
    } else {
      this.#fail(unreachable(cause))
    }
  }

  protected pauseSource() {
    this.connection?.pause()
  }

  protected resumeSource() {
    this.connection?.resume()
  }

  protected stopSource() {
    this.#end()?.destroy()
  }

  #cancel() {
    this.stopSource()
    this.#resolvers.reject(this.#options.signal.reason)
    this.abort(this.#options.signal.reason)
  }

  /** `whole`: the body, if all of it arrived with the head. */
  #resolveHead(whole: Chunk | null) {
    const { head } = this.#parser
    if (head === null) return
    const { status, headers } = head
    try {
      const encoding = headers.get('content-encoding') ?? null
      const chunks = decodeContent({ status, encoding }, this)
      const header = (name: string) => headers.get(name.toLowerCase()) ?? null
      const isDecoded = chunks !== this
      this.#resolvers.resolve({ status, header, chunks, whole: isDecoded ? null : whole })
    } catch (error) {
      this.stopSource()
      this.#resolvers.reject(error)
    }
  }

  #complete() {
    const connection = this.#end()
    this.complete()
    if (connection === null) return
    if (!connection.flushed) connection.destroy()
    else if (!this.#parser.reusable) connection.close()
    else {
      connection.resume()
      this.#options.release(connection)
    }
  }

  #fail(error: AppError) {
    if (this.#body !== null) this.fail(error)
    else this.#resolvers.reject(error)
  }

  /** Releases everything that outlives this round trip. */
  #end(): Connection | null {
    const connection = this.connection
    this.connection = null
    this.#options.signal.removeEventListener('abort', this.#onAbort)
    return connection
  }
}

export function truncated(cause: Error | null): AppError {
  return new AppError(
    'upstream_truncated',
    'The upstream ended its response before it was complete.',
    { cause: cause ?? new Error('the connection was closed before the body was complete') },
  )
}
