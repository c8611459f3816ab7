import type { Errors } from '#api/endpoint.ts'
import { userDisabled } from '#auth/disabled.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { type Envelope, type ErrorResponse, errorResponses } from './failures.ts'

/** What any request to a route that demands a permission can meet. */
const onClosedRoutes: Errors = {
  missing_credentials:
    'Send a credential: "Authorization: Bearer <token or API key>" or "X-Api-Key: <API key>".',
  invalid_api_key: 'This API key is not valid.',
  invalid_token: ['The token has expired.', userDisabled],
  permission_denied: 'Missing permission: can_access_api.',
  internal_error: 'The server failed to handle this request.',
  service_unavailable: 'The database cannot be reached just now.',
  draining: 'The server is shutting down.',
}
const onOpenRoutes: Errors = {
  internal_error: 'The server failed to handle this request.',
}

const names: Readonly<Record<string, string>> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  500: 'InternalError',
  503: 'Unavailable',
}

const answers = {
  Error: errorResponses(onClosedRoutes, 'Error'),
  MessagesError: errorResponses(onClosedRoutes, 'MessagesError'),
}

/** For `components.responses`. */
export const commonResponses: JsonObject = {
  ...named(answers.Error, 'Error'),
  ...named(answers.MessagesError, 'MessagesError'),
}

/**
 * The answers of a route, and those that any request can meet. Where both have a status, the route's
 * examples come first, unless it answers that status with something else than an error.
 */
export function withCommonAnswers(
  own: JsonObject,
  { envelope, isOpen }: { envelope: Envelope; isOpen: boolean },
): JsonObject {
  const common = isOpen ? errorResponses(onOpenRoutes, envelope) : answers[envelope]
  const added = Object.entries(common).map(([status, answer]) => [
    status,
    own[status] === undefined
      ? { $ref: `#/components/responses/${nameOf(status, envelope)}` }
      : addUp(asRecord(own[status]), answer),
  ])
  return { ...own, ...Object.fromEntries(added) }
}

function named(common: JsonObject, envelope: Envelope): JsonObject {
  return Object.fromEntries(
    Object.entries(common).map(([status, answer]) => [nameOf(status, envelope), answer]),
  )
}

function nameOf(status: string, envelope: Envelope): string {
  return `${envelope === 'Error' ? '' : 'Messages'}${names[status]}`
}

function addUp(own: JsonObject, common: ErrorResponse): JsonObject {
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
