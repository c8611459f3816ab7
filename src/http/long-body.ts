import { AppError } from '#lib/errors.ts'

export type BodyDeadlines = {
  /** The longest pause between two chunks. */
  readonly gapMs: number
  /** For the whole body. */
  readonly totalMs: number
}

/**
 * Streams a body of any length with backpressure. Throws `request_timeout` past a deadline, and
 * `client_closed` if the client disconnects before the end.
 */
export async function* readLongBody(
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
      const { done, value } = await within(Math.min(gapMs, remainingMs), reader.read())
      isComplete = done
      if (done) return
      yield value
    }
  } catch (cause) {
    if (!request.signal.aborted) throw cause
    const sentence = 'The client disconnected while sending the request body.'
    throw new AppError('client_closed', sentence, { cause })
  } finally {
    if (!isComplete) void reader.cancel().catch(() => {})
  }
}

async function within<T>(limitMs: number, read: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(bodyTimeout()), limitMs)
  try {
    return await Promise.race([read, promise])
  } finally {
    clearTimeout(timer)
  }
}

function bodyTimeout(): AppError {
  return new AppError('request_timeout', 'The request body was not received in time.')
}
