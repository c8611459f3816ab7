import type { ReadableStreamDefaultReader } from 'node:stream/web'
import type { PooledTransport, UpstreamHttpRequest } from '#inference/transport.ts'
import { chunkOf } from '#inference/transport.ts'
import type { CancelSignal } from '#lib/cancellation.ts'
import { toAbortSignal } from '#lib/deadline.ts'
import type { AppError } from '#lib/errors.ts'
import { ChunkQueue } from './chunk-queue.ts'
import { decodeContent } from './content-decoding.ts'
import { createDescriptorWait } from './descriptor-wait.ts'
import { invalidResponse } from './http1-head.ts'
import { endpointOf, headersOf, identityHeaders } from './http1-request.ts'
import { connectError, unreachable } from './open-connection.ts'
import { truncated } from './round-trip.ts'
import type { SocketTransportOptions } from './socket-transport.ts'

/** Idle connections expire with a granularity of seconds; their limit is for all origins together. */
export type FetchTransportOptions = Pick<
  SocketTransportOptions,
  'idleMs' | 'idleSocketsPerOriginMax' | 'bufferBytesMax' | 'log'
> & { fetch: (url: string, init: BunFetchRequestInit) => Promise<Response> }

/** Bun's error codes for an invalid HTTP response. */
const invalidResponseCodes = new Set([
  'InvalidContentLength',
  'InvalidHTTPResponse',
  'Malformed_HTTP_Response',
  'ResponseHeadersTooLarge',
  'UnexpectedData',
  'UnrequestedUpgrade',
  'UnsupportedTransferEncoding',
])
/** Bun's error codes for a failed connection: nothing was sent. */
const unconnectedCodes = new Set(['ECONNREFUSED', 'EMFILE', 'ENFILE', 'ENOTFOUND'])

/**
 * A transport over `fetch`, for its features: the proxy of the environment, HTTP/2. Events cost more.
 * `fetch` reports neither stale connections nor when it is connected, so requests are not retried here
 * and connecting has no deadline. Responses are parsed as leniently as Bun does.
 */
export function createFetchTransport(options: FetchTransportOptions): PooledTransport {
  const { fetch: sendRequest, bufferBytesMax, log } = options
  const session = new Bun.FetchSession({
    // Explicit, so that no environment variable can disable the verification.
    tls: { rejectUnauthorized: true },
    keepAlive: {
      idleTimeout: options.idleMs / 1_000,
      maxIdleSockets: options.idleSocketsPerOriginMax,
    },
  })
  const closeIdle = () => session.close()
  const withDescriptor = createDescriptorWait({ closeIdle, log })
  let isClosed = false

  return {
    async send(request) {
      const { signal } = request
      signal.throwIfAborted()
      const { url, init } = toFetch(request)
      const response = await withDescriptor(
        () =>
          sendRequest(url, { ...init, session }).catch((error) => {
            throw signal.aborted ? signal.reason : requestError(error)
          }),
        signal,
      )
      const ended = () => {
        if (isClosed) closeIdle()
      }
      const { status, headers, body } = response
      const encoding = headers.get('content-encoding')
      const chunks = new ReadAhead(body, { signal, bufferBytesMax, ended })
      try {
        const decoded = decodeContent({ status, encoding }, chunks)
        return { status, header: (name) => headers.get(name), chunks: decoded, whole: null }
      } catch (error) {
        void chunks.return()
        throw error
      }
    },
    closeIdle,
    close() {
      isClosed = true
      closeIdle()
    },
  }
}

/** Refuses invalid requests as the socket transport does. */
function toFetch(request: UpstreamHttpRequest): { url: string; init: BunFetchRequestInit } {
  const { method, body = '' } = request
  const endpoint = endpointOf(request.url)
  const headers = headersOf(endpoint, request)
  for (const [name, value] of identityHeaders(headers, request)) headers.set(name, value)
  return {
    url: endpoint.origin + endpoint.pathAndQuery,
    init: {
      method,
      signal: toAbortSignal(request.signal),
      headers: [...headers],
      ...(body.length === 0 ? {} : { body }),
      redirect: 'manual',
      decompress: false,
      // Only our own deadlines apply.
      timeout: false,
    },
  }
}

/**
 * Reads a body ahead into a bounded queue: a stream that fails discards its unread bytes. A full queue
 * pauses the upstream.
 */
class ReadAhead extends ChunkQueue {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  readonly #signal: CancelSignal
  readonly #onAbort = () => {
    this.abort(this.#signal.reason)
    this.resumeSource()
  }
  /** Set while reading is paused. */
  #paused: PromiseWithResolvers<void> | null = null

  constructor(
    body: ReadableStream<Uint8Array> | null,
    options: { signal: CancelSignal; bufferBytesMax: number; ended: () => void },
  ) {
    super({ bytesMax: options.bufferBytesMax })
    this.#reader = body?.getReader()
    this.#signal = options.signal
    options.signal.addEventListener('abort', this.#onAbort, { once: true })
    void this.#pump().finally(options.ended)
  }

  protected pauseSource() {
    this.#paused ??= Promise.withResolvers()
  }

  protected resumeSource() {
    this.#paused?.resolve()
    this.#paused = null
  }

  protected stopSource() {
    void this.#reader?.cancel().catch(() => {})
    this.resumeSource()
  }

  async #pump(): Promise<void> {
    try {
      while (this.#reader !== undefined) {
        const { done, value } = await this.#reader.read()
        if (done) break
        this.push(chunkOf(value))
        if (this.#paused !== null) await this.#paused.promise
      }
      this.complete()
    } catch (error) {
      this.fail(this.#signal.aborted ? this.#signal.reason : bodyError(error))
    } finally {
      this.#signal.removeEventListener('abort', this.#onAbort)
    }
  }
}

function requestError(error: unknown): AppError {
  const cause = causeOf(error)
  if (invalidResponseCodes.has(cause.code)) return invalidResponse(cause.message)
  return unconnectedCodes.has(cause.code) ? connectError(cause) : unreachable(cause)
}

function bodyError(error: unknown): AppError {
  const cause = causeOf(error)
  return invalidResponseCodes.has(cause.code) ? invalidResponse(cause.message) : truncated(cause)
}

/** Only the code: Bun's message repeats the URL, which may contain a credential. */
function causeOf(error: unknown): Error & { code: string } {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
  return Object.assign(new Error(`fetch failed: ${code}`), { code })
}
