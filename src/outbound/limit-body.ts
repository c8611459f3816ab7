import { AppError } from '#lib/errors.ts'

/**
 * Limits the body of a response: reading fails beyond `bytesMax`, or when the signal aborts. `end` is
 * called once, when the body is complete, cancelled or absent.
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
        controller.error(signal.aborted ? signal.reason : truncated(error))
      }
    },
    cancel: stop,
  })
  return new Response(limited, { status, statusText, headers })
}

export function invalidResponse(problem: string): AppError {
  return new AppError('upstream_invalid_answer', `The server ${problem}.`)
}

function tooLong(bytesMax: number): AppError {
  return invalidResponse(`sent more than the limit of ${bytesMax} bytes`)
}

function truncated(error: unknown): AppError {
  if (error instanceof AppError) return error
  return new AppError('upstream_truncated', 'The server ended its response early.', {
    cause: error,
  })
}
