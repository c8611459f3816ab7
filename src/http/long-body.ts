import { AppError } from '#lib/errors.ts'

export type BodyDeadlines = {
  /** The longest pause between two chunks. */
  readonly gapMs: number
  /** For the whole body. */
  readonly totalMs: number
}

/**
 * Idle connections are closed after this time. Bun would also cut a body that arrives with less than
 * 16 KB/s, without a response, so the timeout is off while a body is read.
 */
export const idleTimeoutS = 30

/** Bun's limit. */
const timeoutMaxS = 255
/** Bun counts in steps of four seconds. */
const timeoutMarginS = 10

/**
 * The same for a response that may be a stream: it is silent between heartbeats and while its reader
 * stalls. The timeout outlives the response, so 0, which is never, is only for longer pauses.
 */
export function streamTimeoutS(pace: { heartbeatMs: number; readerStallMs: number }): number {
  const timeoutS = Math.ceil(Math.max(pace.heartbeatMs, pace.readerStallMs) / 1000) + timeoutMarginS
  return timeoutS > timeoutMaxS ? 0 : timeoutS
}

/**
 * Streams an upload of any length with backpressure. Throws `unsupported_encoding` if it is
 * compressed, `request_timeout` past a deadline, and `client_closed` if the client disconnects
 * before the end.
 */
export function readLongBody(
  request: Request,
  deadlines: BodyDeadlines,
): AsyncGenerator<Uint8Array, void, void> {
  const encoding = request.headers.get('content-encoding') ?? ''
  if (!/^(identity)?$/i.test(encoding.trim())) {
    throw new AppError('unsupported_encoding', 'Send the content of a file without compression.')
  }
  return readEncodedBody(request, deadlines)
}

/** The same for the bytes as they are sent, whatever their encoding. */
export async function* readEncodedBody(
  request: Request,
  { gapMs, totalMs }: BodyDeadlines,
): AsyncGenerator<Uint8Array, void, void> {
  if (request.body === null) return
  const reader = request.body.getReader()
  const endsAt = performance.now() + totalMs
  let isComplete = false
  try {
    for (;;) {
      const remainingMs = Math.max(0, endsAt - performance.now())
      const { done, value } = await withinMs(Math.min(gapMs, remainingMs), reader.read(), request)
      isComplete = done
      if (done) return
      yield value
    }
  } finally {
    if (!isComplete) void reader.cancel().catch(() => {})
  }
}

/** Rejects with `request_timeout` past the limit, and with `client_closed` if the client disconnects. */
function withinMs<T>(limitMs: number, reading: Promise<T>, request: Request): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(bodyTimeout()), limitMs)
    reading.then(
      (read) => {
        clearTimeout(timer)
        resolve(read)
      },
      (cause) => {
        clearTimeout(timer)
        reject(lostBody(request, cause))
      },
    )
  })
}

/** The error of a body that cannot be read. */
export function lostBody({ signal }: Request, cause: unknown): unknown {
  if (!signal.aborted) return cause
  const sentence = 'The client disconnected while sending the request body.'
  return new AppError('client_closed', sentence, { cause })
}

export function bodyTimeout(): AppError {
  return new AppError('request_timeout', 'The request body was not received in time.')
}
