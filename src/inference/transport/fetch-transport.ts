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
      const chunks = readAhead(body, { signal, bufferBytesMax, ended })
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
function readAhead(
  body: ReadableStream<Uint8Array> | null,
  options: { signal: CancelSignal; bufferBytesMax: number; ended: () => void },
): ChunkQueue {
  const { signal } = options
  const reader = body?.getReader()
  /** Set while reading is paused. */
  let paused: PromiseWithResolvers<void> | null = null
  const pause = () => {
    paused ??= Promise.withResolvers()
  }
  const resume = () => {
    paused?.resolve()
    paused = null
  }
  const stop = () => {
    void reader?.cancel().catch(() => {})
    resume()
  }
  const queue = new ChunkQueue({ pause, resume, stop }, { bytesMax: options.bufferBytesMax })
  const onAbort = () => {
    queue.abort(signal.reason)
    resume()
  }
  const pump = async () => {
    try {
      while (reader !== undefined) {
        const { done, value } = await reader.read()
        if (done) break
        queue.push(chunkOf(value))
        if (paused !== null) await paused.promise
      }
      queue.complete()
    } catch (error) {
      queue.fail(signal.aborted ? signal.reason : bodyError(error))
    } finally {
      signal.removeEventListener('abort', onAbort)
      options.ended()
    }
  }
  signal.addEventListener('abort', onAbort, { once: true })
  void pump()
  return queue
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
