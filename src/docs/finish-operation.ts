import { isMessagesPath } from '#http/error-envelope.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { withCommonAnswers } from './common-answers.ts'
import { operationId } from './operation-id.ts'

/** Either of the first two, in any operation; a WebSocket takes the third as well. */
export const securitySchemes = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'A token of the identity provider (JWT), or an API key: `sk-svc-v1-…`.',
  },
  apiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Api-Key',
    description: 'An API key. It counts before an `Authorization` header that is sent as well.',
  },
  token: {
    type: 'apiKey',
    in: 'query',
    name: 'token',
    description:
      'A token or an API key of a WebSocket, whose client often cannot send headers of its own.',
  },
}

/** What the document says of one operation beside what stands at its route. */
export function finishOperation(
  said: JsonObject,
  { method, path }: { method: string; path: string },
): JsonObject {
  const { 'x-permission': permission, description, responses, ...rest } = said
  const own = asRecord(responses)
  const isSocket = '101' in own
  const isOpen = permission === undefined
  // A route without a permission that refuses all the same says itself whom.
  const isFree = isOpen && !('401' in own)
  const envelope = isMessagesPath(path) ? 'MessagesError' : 'Error'
  return {
    ...rest,
    operationId: operationId({ method, path, isSocket }),
    description: [description, isFree ? 'Open to everyone.' : sayPermission(permission)]
      .filter(Boolean)
      .join('\n\n'),
    ...(isOpen ? {} : { 'x-permission': permission }),
    ...(isSocket ? { 'x-websocket': true } : {}),
    security: isOpen ? waysIntoOpen(isFree) : waysInto(isSocket),
    responses: withCommonAnswers(own, { envelope, isOpen }),
  }
}

function waysInto(isSocket: boolean) {
  return [...(isSocket ? [{ token: [] }] : []), { bearer: [] }, { apiKey: [] }]
}

/** Without a credential, or, where the operator set one, with that as a bearer. */
function waysIntoOpen(isFree: boolean) {
  return isFree ? [] : [{}, { bearer: [] }]
}

function sayPermission(permission: unknown): string {
  if (permission === undefined) return ''
  if (permission === 'can_access_api') return 'Needs the permission `can_access_api`.'
  return `Needs the permissions \`can_access_api\` and \`${permission}\`.`
}
