import type { TObject } from '@sinclair/typebox'
import type { Endpoint, QueryReader } from '#api/endpoint.ts'
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

/** The same endpoint with status 400 for invalid queries, bodies and requests. */
export function withModelErrors(endpoint: Endpoint): Endpoint {
  const { query, body, handle } = endpoint
  return {
    ...endpoint,
    ...(query === undefined ? {} : { query: queryReader(query) }),
    ...(body?.kind === 'json' ? { body: { ...body, read: convertErrors(body.read) } } : {}),
    handle: async (input: never) => {
      try {
        return await handle(input)
      } catch (error) {
        throw toModelError(error)
      }
    },
  }
}

function queryReader(query: TObject | QueryReader<unknown>): QueryReader<unknown> {
  const read = (params: URLSearchParams) => readQuery(query, String(params))
  return { schema: 'read' in query ? query['schema'] : query, read: convertErrors(read) }
}

function convertErrors<Input, T>(read: (input: Input) => T): (input: Input) => T {
  return (input) => {
    try {
      return read(input)
    } catch (error) {
      throw toModelError(error)
    }
  }
}
