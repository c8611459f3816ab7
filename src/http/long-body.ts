import { AppError } from '#lib/errors.ts'

export type BodyDeadlines = {
  /** Neither a byte nor the end for so long ends the upload. */
  readonly gapMs: number
  /** For the whole of it. */
  readonly totalMs: number
}

/**
 * A body of any length as it comes, at the speed at which it is taken. Throws `request_timeout`
 * past a deadline, `client_closed` when the client goes away before its end.
 */
export async function* readLongBody(
  request: Request,
  { gapMs, totalMs }: BodyDeadlines,
): AsyncGenerator<Uint8Array, void, void> {
  if (request.body === null) return
  const reader = request.body.getReader()
  const endsAt = performance.now() + totalMs
  let isWhole = false
  try {
    for (;;) {
      const restMs = Math.max(0, endsAt - performance.now())
      const { done, value } = await within(Math.min(gapMs, restMs), reader.read())
      isWhole = done
      if (done) return
      yield value
    }
  } catch (cause) {
    if (!request.signal.aborted) throw cause
    const sentence = 'The client went away while it was sending the request body.'
    throw new AppError('client_closed', sentence, { cause })
  } finally {
    if (!isWhole) void reader.cancel().catch(() => {})
  }
}

async function within<T>(limitMs: number, read: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(tooSlow()), limitMs)
  try {
    return await Promise.race([read, promise])
  } finally {
    clearTimeout(timer)
  }
}

function tooSlow(): AppError {
  return new AppError('request_timeout', 'The request body did not come in time.')
}
