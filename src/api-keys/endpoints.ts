import { type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { deleted, idExample, listExample, listOf, listPage, pageQuery } from '#api/shapes.ts'
import { actorOf } from '#audit/audit.ts'
import type { Auth } from '#auth/auth.ts'
import { AppError } from '#lib/errors.ts'
import { isUuid } from '#lib/uuid.ts'
import {
  apiKeyExample,
  apiKeyRecord,
  createdApiKey,
  newApiKey,
  readNewApiKey,
  renderApiKey,
  renderCreatedApiKey,
} from './record.ts'

export type ApiKeyEndpointsDeps = { auth: Pick<Auth, 'keys'>; now: () => Date }

/** Creating, listing and revoking the caller's own API keys. */
export function apiKeyEndpoints({ auth, now }: ApiKeyEndpointsDeps): Endpoint[] {
  return [
    endpoint({
      method: 'POST',
      path: '/v1/api-keys',
      permission: 'can_access_api',
      credential: 'jwt',
      tag: 'API keys',
      summary: 'Create an API key',
      description: 'Requires a JWT. Only this response contains the key itself.',
      body: jsonBody(newApiKey, {
        example: { name: 'nightly report' },
        read: (body) => readNewApiKey(body, now()),
      }),
      responses: {
        200: {
          description: 'The key.',
          content: json(createdApiKey, { ...apiKeyExample, key: 'sk-svc-v1-…' }),
        },
      },
      errors: {
        unprocessable: [
          '"name" must have 1 to 100 characters.',
          {
            code: 'too_many_api_keys',
            message: 'You have 100 API keys, which is the limit; delete one first.',
          },
        ],
      },
      async handle({ body, context, set }) {
        const { userId, subject } = context.principal
        const owner = { userId, subject, kind: 'user' } as const
        const key = await auth.keys.create(actorOf(context), owner, body)
        set.headers['cache-control'] = 'no-store'
        return renderCreatedApiKey(key)
      },
    }),

    endpoint({
      method: 'GET',
      path: '/v1/api-keys',
      permission: 'can_access_api',
      tag: 'API keys',
      summary: 'List your API keys',
      description: 'Newest first. Expired keys are listed, revoked ones are not.',
      query: pageQuery,
      responses: {
        200: {
          description: 'A page of keys.',
          content: json(
            listOf(apiKeyRecord),
            listExample({ ...apiKeyExample, last_used_at: null }),
          ),
        },
      },
      errors: { unprocessable: '"limit" must be a whole number from 1 to 100.' },
      async handle({ query, context }) {
        const page = { after: undefined, ...query }
        const { records, hasMore } = await auth.keys.list(context.principal.userId, page)
        return listPage(records.map(renderApiKey), hasMore)
      },
    }),

    endpoint({
      method: 'DELETE',
      path: '/v1/api-keys/:id',
      permission: 'can_access_api',
      tag: 'API keys',
      summary: 'Revoke an API key',
      description: 'The key stops working on every replica within a second.',
      params: { id: 'The id of the key.' },
      responses: {
        200: {
          description: 'The key is revoked.',
          content: json(deleted('api_key.deleted'), {
            id: idExample,
            object: 'api_key.deleted',
            deleted: true,
          }),
        },
      },
      errors: { not_found: notFound },
      async handle({ params: { id }, context }) {
        const { userId } = context.principal
        const isRevoked = isUuid(id) && (await auth.keys.revoke(actorOf(context), userId, id))
        if (!isRevoked) throw new AppError('not_found', notFound)
        return { id, object: 'api_key.deleted', deleted: true }
      },
    }),
  ]
}

const notFound = 'You have no API key with this id.'
