import type { UpstreamHttpResponse } from '#inference/transport.ts'
import { AppError } from '#lib/errors.ts'
import { ChunkQueue, type ChunkSource } from './chunk-queue.ts'
import type { Connection, ConnectionOwner } from './connection.ts'
import { createResponseParser, type ResponseParser } from './http1-response.ts'
import { unreachable } from './open-connection.ts'

export type RoundTripOptions = {
  readonly signal: AbortSignal
  readonly headerBytesMax: number
  readonly bufferBytesMax: number
  /** Takes the connection once the answer was read whole and it can carry another request. */
  readonly release: (connection: Connection) => void
}

/**
 * Sends one request over a connection that is free, and gives its answer once the head is there;
 * null when the connection had been used before and was lost without a byte of an answer, which
 * says that it was stale. Throws `signal.reason` or an `AppError`.
 */
export function sendOver(
  connection: Connection,
  request: Uint8Array,
  options: RoundTripOptions,
): Promise<UpstreamHttpResponse | null> {
  const roundTrip = new RoundTrip(connection, options)
  roundTrip.start(request)
  return roundTrip.answer
}

class RoundTrip implements ConnectionOwner, ChunkSource {
  readonly answer: Promise<UpstreamHttpResponse | null>
  readonly #settle: PromiseWithResolvers<UpstreamHttpResponse | null>
  readonly #options: RoundTripOptions
  readonly #parser: ResponseParser
  readonly #chunks: ChunkQueue
  readonly #onAbort = () => this.#abort()
  /** Null once this round trip has ended; the connection may then serve another. */
  #connection: Connection | null
  /** Whether any byte of an answer has come. */
  #answering = false
  /** Whether its head has. */
  #answered = false

  constructor(connection: Connection, options: RoundTripOptions) {
    this.#settle = Promise.withResolvers()
    this.answer = this.#settle.promise
    this.#options = options
    this.#parser = createResponseParser(options)
    this.#chunks = new ChunkQueue(this, { bytesMax: options.bufferBytesMax })
    this.#connection = connection
    connection.handTo(this)
  }

  start(request: Uint8Array) {
    const { signal } = this.#options
    if (signal.aborted) return this.#abort()
    signal.addEventListener('abort', this.#onAbort, { once: true })
    this.#connection?.send(request)
  }

  received(bytes: Buffer) {
    this.#answering = true
    const chunk = this.#parser.push(bytes)
    if (!this.#answered) this.#giveAnswer()
    if (chunk !== null) this.#chunks.push(chunk)
    if (this.#parser.complete) this.#complete()
    else if (this.#parser.failure !== null) this.#break(this.#parser.failure)
  }

  lost(cause: Error | null) {
    const connection = this.#end()
    if (this.#answered) {
      if (cause === null && this.#parser.endsWithConnection) this.#chunks.complete()
      else this.#fail(truncated(cause))
    } else if (connection?.reused && !this.#answering) {
      this.#settle.resolve(null)
    } else {
      this.#fail(unreachable(cause))
    }
  }

  pause() {
    this.#connection?.pause()
  }

  resume() {
    this.#connection?.resume()
  }

  stop() {
    this.#end()?.destroy()
  }

  #abort() {
    this.#end()?.destroy()
    this.#settle.reject(this.#options.signal.reason)
    this.#chunks.abort(this.#options.signal.reason)
  }

  #giveAnswer() {
    const { head } = this.#parser
    if (head === null) return
    this.#answered = true
    this.#settle.resolve({
      status: head.status,
      header: (name) => head.headers.get(name.toLowerCase()) ?? null,
      chunks: this.#chunks,
    })
  }

  #complete() {
    const connection = this.#end()
    this.#chunks.complete()
    if (connection === null) return
    if (!connection.flushed) connection.destroy()
    else if (!this.#parser.reusable) connection.close()
    else {
      connection.resume()
      this.#options.release(connection)
    }
  }

  #break(failure: AppError) {
    this.#end()?.destroy()
    this.#fail(failure)
  }

  #fail(error: AppError) {
    if (this.#answered) this.#chunks.fail(error)
    else this.#settle.reject(error)
  }

  /** Lets go of everything that outlives this round trip. */
  #end(): Connection | null {
    const connection = this.#connection
    if (connection === null) return null
    this.#connection = null
    this.#options.signal.removeEventListener('abort', this.#onAbort)
    return connection
  }
}

export function truncated(cause: Error | null): AppError {
  return new AppError('upstream_truncated', 'The upstream broke off its answer.', {
    cause: cause ?? new Error('the connection was closed before the body was complete'),
  })
}
