import type { Errors } from '#api/endpoint.ts'
import {
  isListenPath,
  isMessagesPath,
  renderError,
  renderListenError,
  renderMessagesError,
  statusForMessages,
} from '#http/error-envelope.ts'
import { AppError, type ErrorKind } from '#lib/errors.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'

/** The error shape of most endpoints, that of the Messages API, or that of Deepgram. */
type Envelope = 'Error' | 'MessagesError' | 'ListenError'

export function envelopeOf(path: string): Envelope {
  if (isListenPath(path)) return 'ListenError'
  return isMessagesPath(path) ? 'MessagesError' : 'Error'
}

type ErrorResponse = {
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
  ListenError: (error) => ({
    status: error.status,
    code: error.wireCode,
    value: { ...renderListenError(error), request_id: requestIdExample },
  }),
}

/** The errors of every endpoint that requires a permission. */
const authorisedErrors: Errors = {
  missing_credentials:
    'Send a credential: "Authorization: Bearer <token or API key>" or "X-Api-Key: <API key>".',
  invalid_api_key: 'This API key is not valid.',
  invalid_token: [
    'The token has expired.',
    { code: 'user_disabled', message: 'This user was disabled by an administrator.' },
  ],
  permission_denied: 'Missing permission: can_access_api.',
  internal_error: 'The server failed to handle this request.',
  service_unavailable: 'The database is unreachable.',
  draining: 'The server is shutting down.',
}
const publicErrors: Errors = {
  internal_error: 'The server failed to handle this request.',
}

/** What even an endpoint without input refuses. */
const malformedRequest: Errors = { invalid_request: 'The request has more than one Host header.' }

function refusalOf(envelope: Envelope) {
  const schema = { $ref: `#/components/schemas/${envelope}` }
  return {
    description: 'The connection was not upgraded.',
    content: { 'application/json': { schema } },
  }
}
const handshakeRefusal = {
  Error: refusalOf('Error'),
  MessagesError: refusalOf('MessagesError'),
  ListenError: refusalOf('ListenError'),
}

const names: Readonly<Record<string, string>> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  500: 'InternalError',
  503: 'Unavailable',
}

const shared = {
  Error: errorResponses(authorisedErrors, 'Error'),
  MessagesError: errorResponses(authorisedErrors, 'MessagesError'),
  ListenError: errorResponses(authorisedErrors, 'ListenError'),
}

/** For `components.responses`. */
export const commonResponses: JsonObject = {
  ...nameResponses('Error'),
  ...nameResponses('MessagesError'),
  ...nameResponses('ListenError'),
}

/**
 * Adds the responses that any request can get. Where an endpoint documents the same status, its own
 * examples come first; if that status is not an error there, it stays as it is.
 */
export function withCommonResponses(
  own: JsonObject,
  { envelope, isPublic }: { envelope: Envelope; isPublic: boolean },
): JsonObject {
  const common = isPublic ? errorResponses(publicErrors, envelope) : shared[envelope]
  const added = Object.entries(common).map(([status, response]) => [
    status,
    own[status] === undefined
      ? { $ref: `#/components/responses/${nameOf(status, envelope)}` }
      : mergeExamples(asRecord(own[status]), response),
  ])
  const all = { ...own, ...Object.fromEntries(added) }
  if ('101' in all) return { ...all, default: handshakeRefusal[envelope] }
  const hasRefusal = Object.keys(all).some((status) => status.startsWith('4'))
  return hasRefusal ? all : { ...all, ...errorResponses(malformedRequest, envelope) }
}

function nameResponses(envelope: Envelope): JsonObject {
  return Object.fromEntries(
    Object.entries(shared[envelope]).map(([status, response]) => [
      nameOf(status, envelope),
      response,
    ]),
  )
}

function nameOf(status: string, envelope: Envelope): string {
  return `${envelope.replace('Error', '')}${names[status]}`
}

function mergeExamples(own: JsonObject, common: ErrorResponse): JsonObject {
  const { schema, examples } = common.content['application/json']
  const ownContent = asRecord(asRecord(own['content'])['application/json'])
  if (asRecord(ownContent['schema'])['$ref'] !== schema.$ref) return own
  return {
    description: `${own['description']}, ${common.description}`,
    content: {
      'application/json': {
        schema,
        examples: { ...asRecord(ownContent['examples']), ...examples },
      },
    },
  }
}
