import type { Static, TObject } from '@sinclair/typebox'
import type { QueryReader } from '#api/endpoint.ts'
import { readQuery } from '#api/query.ts'
import { AppError } from '#lib/errors.ts'

/** Invalid requests are status 400 on the model surfaces and on vector stores, and 422 on all others. */
export function toModelError(error: unknown): unknown {
  if (!(error instanceof AppError) || error.status !== 422) return error
  return new AppError('invalid_request', error.message, {
    ...(error.param === null ? {} : { param: error.param }),
    ...(error.wireCode === 'unprocessable' ? {} : { code: error.wireCode }),
    cause: error,
  })
}

/** Throws `toModelError` of what `work` throws. */
export async function withModelErrors<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw toModelError(error)
  }
}

/** The same reader of bodies or queries, with errors of status 400. */
export function readAsModel<Input, T>(read: (input: Input) => T): (input: Input) => T {
  return (input) => {
    try {
      return read(input)
    } catch (error) {
      throw toModelError(error)
    }
  }
}

/** Query parameters whose errors are status 400. */
export function modelQuery<Query extends TObject, T>(
  schema: Query,
  convert: (query: Static<Query>) => T,
): QueryReader<T> {
  const read = (params: URLSearchParams) =>
    convert(readQuery(schema, String(params)) as Static<Query>)
  return { schema, read: readAsModel(read) }
}
