import { AppError } from '#lib/errors.ts'

/**
 * The same response with a body that fails once it is longer than it may be, or when the signal
 * aborts. `end` is called once, when the body is over, given up or absent.
 */
export function limitBody(
  response: Response,
  { bytesMax, signal, end }: { bytesMax: number; signal: AbortSignal; end: () => void },
): Response {
  const { body, status, statusText, headers } = response
  if (body === null) {
    end()
    return response
  }
  if (Number(headers.get('content-length') ?? 0) > bytesMax) {
    void body.cancel().catch(() => {})
    throw tooLong(bytesMax)
  }
  const reader = body.getReader()
  let bytesLeft = bytesMax
  const stop = () => {
    end()
    void reader.cancel().catch(() => {})
  }
  const limited = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (done) {
          end()
          return controller.close()
        }
        bytesLeft -= value.byteLength
        if (bytesLeft < 0) throw tooLong(bytesMax)
        controller.enqueue(value)
      } catch (error) {
        stop()
        controller.error(signal.aborted ? signal.reason : brokenOff(error))
      }
    },
    cancel: stop,
  })
  return new Response(limited, { status, statusText, headers })
}

export function invalidAnswer(what: string): AppError {
  return new AppError('upstream_invalid_answer', `The server ${what}.`)
}

function tooLong(bytesMax: number): AppError {
  return invalidAnswer(`sent more than ${bytesMax} bytes, which is the limit`)
}

function brokenOff(error: unknown): AppError {
  if (error instanceof AppError) return error
  return new AppError('upstream_truncated', 'The server broke its answer off.', { cause: error })
}
