import type { Errors } from '#api/endpoint.ts'
import { renderError, renderMessagesError, statusForMessages } from '#http/error-envelope.ts'
import { AppError, type ErrorKind } from '#lib/errors.ts'

/** Who reads the error: everybody, or clients of the Messages protocol. */
export type Envelope = 'Error' | 'MessagesError'

export type ErrorResponse = {
  readonly description: string
  readonly content: {
    readonly 'application/json': {
      readonly schema: { readonly $ref: string }
      readonly examples: Readonly<Record<string, { readonly value: unknown }>>
    }
  }
}

/** One answer for each status, with an example for each failure. */
export function errorResponses(errors: Errors, envelope: Envelope): Record<string, ErrorResponse> {
  const byStatus = Map.groupBy(listFailures(errors).map(rendered[envelope]), ({ status }) => status)
  const schema = { $ref: `#/components/schemas/${envelope}` }
  return Object.fromEntries(
    [...byStatus].map(([status, failures]) => [
      status,
      {
        description: [...new Set(failures.map(({ code }) => code))].join(', '),
        content: { 'application/json': { schema, examples: nameExamples(failures) } },
      },
    ]),
  )
}

function listFailures(errors: Errors): AppError[] {
  return Object.entries(errors).flatMap(([kind, failures]) =>
    [failures].flat().map((failure) => {
      const { code, message } = typeof failure === 'string' ? { message: failure } : failure
      return new AppError(kind as ErrorKind, message, code === undefined ? {} : { code })
    }),
  )
}

/** Under the code; a second example of one code has a number behind it. */
function nameExamples(failures: readonly { code: string; value: unknown }[]) {
  const seen = new Map<string, number>()
  return Object.fromEntries(
    failures.map(({ code, value }) => {
      const number = (seen.get(code) ?? 0) + 1
      seen.set(code, number)
      return [number === 1 ? code : `${code}_${number}`, { value }]
    }),
  )
}

const requestIdExample = 'req_01kbk5v3n8f0q4z7y2x6w9t1rs'

type Rendered = { readonly status: number; readonly code: string; readonly value: unknown }

const rendered: Readonly<Record<Envelope, (error: AppError) => Rendered>> = {
  Error: (error: AppError) => ({
    status: error.status,
    code: error.wireCode,
    value: renderError(error),
  }),
  MessagesError: (error: AppError) => ({
    status: statusForMessages(error),
    code: error.wireCode,
    value: { ...renderMessagesError(error), request_id: requestIdExample },
  }),
}
