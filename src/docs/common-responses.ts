import type { Errors } from '#api/endpoint.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { type Envelope, type ErrorResponse, errorResponses } from './error-responses.ts'

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

const names: Readonly<Record<string, string>> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  500: 'InternalError',
  503: 'Unavailable',
}

const shared = {
  Error: errorResponses(authorisedErrors, 'Error'),
  MessagesError: errorResponses(authorisedErrors, 'MessagesError'),
}

/** For `components.responses`. */
export const commonResponses: JsonObject = {
  ...nameResponses('Error'),
  ...nameResponses('MessagesError'),
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
  return { ...own, ...Object.fromEntries(added) }
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
  return `${envelope === 'Error' ? '' : 'Messages'}${names[status]}`
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
