import type { Errors } from '#api/endpoint.ts'
import { renderError, renderMessagesError, statusForMessages } from '#http/error-envelope.ts'
import { AppError, type ErrorKind } from '#lib/errors.ts'

/** The error shape of everything outside of /compat, or that of the Messages API. */
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

/** One response per status, with an example for each error. */
export function errorResponses(errors: Errors, envelope: Envelope): Record<string, ErrorResponse> {
  const rendered = listErrors(errors).map(render[envelope])
  const byStatus = Map.groupBy(rendered, ({ status }) => status)
  const schema = { $ref: `#/components/schemas/${envelope}` }
  return Object.fromEntries(
    [...byStatus].map(([status, examples]) => [
      status,
      {
        description: [...new Set(examples.map(({ code }) => code))].join(', '),
        content: { 'application/json': { schema, examples: nameExamples(examples) } },
      },
    ]),
  )
}

function listErrors(errors: Errors): AppError[] {
  return Object.entries(errors).flatMap(([kind, examples]) =>
    [examples].flat().map((example) => {
      const { code, message } = typeof example === 'string' ? { message: example } : example
      return new AppError(kind as ErrorKind, message, code === undefined ? {} : { code })
    }),
  )
}

/** By code; further examples of the same code get a number: `unprocessable_2`. */
function nameExamples(examples: readonly { code: string; value: unknown }[]) {
  const counts = new Map<string, number>()
  return Object.fromEntries(
    examples.map(({ code, value }) => {
      const number = (counts.get(code) ?? 0) + 1
      counts.set(code, number)
      return [number === 1 ? code : `${code}_${number}`, { value }]
    }),
  )
}

const requestIdExample = 'req_01kbk5v3n8f0q4z7y2x6w9t1rs'

type RenderedError = { readonly status: number; readonly code: string; readonly value: unknown }

const render: Readonly<Record<Envelope, (error: AppError) => RenderedError>> = {
  Error: (error) => ({
    status: error.status,
    code: error.wireCode,
    value: renderError(error),
  }),
  MessagesError: (error) => ({
    status: statusForMessages(error),
    code: error.wireCode,
    value: { ...renderMessagesError(error), request_id: requestIdExample },
  }),
}
