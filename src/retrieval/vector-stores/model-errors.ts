import { AppError } from '#lib/errors.ts'

/** What is wrong with a body is a 400 where clients of the model surfaces send it, never a 422. */
export async function asModelApi<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw toModelError(error)
  }
}

/** The error as the model surfaces tell it. */
export function toModelError(error: unknown): unknown {
  if (!(error instanceof AppError) || error.status !== 422) return error
  return new AppError('invalid_request', error.message, {
    ...(error.param === null ? {} : { param: error.param }),
    ...(error.wireCode === 'unprocessable' ? {} : { code: error.wireCode }),
    cause: error,
  })
}
