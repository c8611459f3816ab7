import type { Transport, UpstreamHttpRequest } from '#inference/transport.ts'
import { chunkOf } from '#inference/transport.ts'
import type { AppError } from '#lib/errors.ts'
import type { Log } from '#telemetry/log.ts'
import { ChunkQueue } from './chunk-queue.ts'
import { createDescriptorWait } from './descriptor-wait.ts'
import { invalidAnswer } from './http1-head.ts'
import { headersOf, targetOf } from './http1-request.ts'
import { unreachable, whyUnopened } from './open-connection.ts'
import { truncated } from './round-trip.ts'

export type FetchTransportOptions = {
  fetch: (url: string, init: BunFetchRequestInit) => Promise<Response>
  /** How long an unused connection is kept, in steps of some seconds. */
  idleMs: number
  /** To all origins together. */
  idleSocketsMax: number
  /** What is read of one body before it is asked for; then the upstream is held back. */
  bufferBytesMax: number
  log?: Pick<Log, 'warn'>
}

/** How Bun names an answer that is not sound HTTP. */
const invalidAnswerCodes = new Set([
  'InvalidContentLength',
  'InvalidHTTPResponse',
  'Malformed_HTTP_Response',
  'ResponseHeadersTooLarge',
  'UnexpectedData',
  'UnrequestedUpgrade',
  'UnsupportedTransferEncoding',
])
/** … and a request of which nothing was sent, because there was no connection. */
const unconnectedCodes = new Set(['ECONNREFUSED', 'EMFILE', 'ENFILE', 'ENOTFOUND'])

/**
 * The same over `fetch`, for whoever needs what it knows and our own client does not: the proxy of
 * the environment, HTTP/2. Its events cost more. Whether a failed request was on a kept connection
 * is not told, so none is repeated here; nor is when a connection stands, so connecting has no
 * deadline. Answers are read as leniently as Bun does.
 */
export function createFetchTransport(
  options: FetchTransportOptions,
): Transport & { close(): void } {
  const { fetch: ask, bufferBytesMax, log } = options
  const session = new Bun.FetchSession({
    // Stated, so that no environment variable can turn the verification off.
    tls: { rejectUnauthorized: true },
    keepAlive: { idleTimeout: options.idleMs / 1_000, maxIdleSockets: options.idleSocketsMax },
  })
  const closeIdle = () => session.close()
  const withDescriptor = createDescriptorWait({ closeIdle, log })
  let isClosed = false

  return {
    async send(request) {
      const { signal } = request
      signal.throwIfAborted()
      const { url, init } = toFetch(request)
      const answer = await withDescriptor(
        () =>
          ask(url, { ...init, session }).catch((error) => {
            throw signal.aborted ? signal.reason : whyUnanswered(error)
          }),
        signal,
      )
      const ended = () => {
        if (isClosed) closeIdle()
      }
      return {
        status: answer.status,
        header: (name) => answer.headers.get(name),
        chunks: readAhead(answer.body, { signal, bufferBytesMax, ended }),
      }
    },
    close() {
      isClosed = true
      closeIdle()
    },
  }
}

/** Refuses what cannot be sent as our own client does. */
function toFetch(request: UpstreamHttpRequest): { url: string; init: BunFetchRequestInit } {
  const { method, body = '', signal } = request
  const target = targetOf(request.url)
  return {
    url: target.origin + target.pathAndQuery,
    init: {
      method,
      signal,
      headers: [...headersOf(target, request)],
      ...(body.length === 0 ? {} : { body }),
      redirect: 'manual',
      decompress: false,
      // Our own deadlines are the only ones.
      timeout: false,
    },
  }
}

/**
 * Reads a body as far as the buffer goes, since a stream that fails forgets what nobody has read.
 * Not reading holds the upstream back.
 */
function readAhead(
  body: ReadableStream<Uint8Array> | null,
  options: { signal: AbortSignal; bufferBytesMax: number; ended: () => void },
): ChunkQueue {
  const { signal } = options
  const reader = body?.getReader()
  /** Set while nothing more is read; resolves when there is room again. */
  let room: PromiseWithResolvers<void> | null = null
  const pause = () => {
    room ??= Promise.withResolvers()
  }
  const resume = () => {
    room?.resolve()
    room = null
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
        if (room !== null) await room.promise
      }
      queue.complete()
    } catch (error) {
      queue.fail(signal.aborted ? signal.reason : whyBrokenOff(error))
    } finally {
      signal.removeEventListener('abort', onAbort)
      options.ended()
    }
  }
  signal.addEventListener('abort', onAbort, { once: true })
  void pump()
  return queue
}

function whyUnanswered(error: unknown): AppError {
  const cause = causeOf(error)
  if (invalidAnswerCodes.has(cause.code)) return invalidAnswer(cause.message)
  return unconnectedCodes.has(cause.code) ? whyUnopened(cause) : unreachable(cause)
}

function whyBrokenOff(error: unknown): AppError {
  const cause = causeOf(error)
  return invalidAnswerCodes.has(cause.code) ? invalidAnswer(cause.message) : truncated(cause)
}

/** Only the code: Bun's own words repeat the URL, which may hold a credential. */
function causeOf(error: unknown): Error & { code: string } {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
  return Object.assign(new Error(`fetch failed: ${code}`), { code })
}
