import { type CallerContext, type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { deletedResponse, idExample, pageQuery, pageResponse, renderPage } from '#api/shapes.ts'
import { actorOf } from '#audit/audit.ts'
import type { Auth } from '#auth/auth.ts'
import type { KeyOwner } from '#auth/key-store.ts'
import type { Permission } from '#auth/permissions.ts'
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

type KeyEndpointsDeps = { auth: Pick<Auth, 'keys'>; now: () => Date }

/** The caller's own API keys. */
export function apiKeyEndpoints(deps: KeyEndpointsDeps): Endpoint[] {
  const keys: OwnedKeys = {
    path: '/v1/api-keys',
    permission: 'can_access_api',
    tag: 'API keys',
    summaries: {
      create: 'Create an API key',
      list: 'List your API keys',
      revoke: 'Revoke an API key',
    },
    example: { id: idExample, name: 'nightly report' },
    limitReached: 'You have 100 API keys, which is the limit; delete one first.',
    keyParam: 'id',
    keyNotFound: () => new AppError('not_found', 'You have no API key with this id.'),
    params: {},
    ownerNotFound: [],
    ownerOf({ principal: { userId, subject } }) {
      return { userId, subject, kind: 'user' }
    },
  }
  return keyEndpoints(keys, deps)
}

/** The API keys of one kind of owner. */
type OwnedKeys = {
  readonly path: string
  readonly permission: Permission
  readonly tag: string
  readonly summaries: { readonly create: string; readonly list: string; readonly revoke: string }
  readonly example: { readonly id: string; readonly name: string }
  readonly limitReached: string
  /** The path parameter with the id of a key. */
  readonly keyParam: string
  readonly keyNotFound: (id: string) => AppError
  /** The path parameters of the owner. */
  readonly params: Readonly<Record<string, string>>
  readonly ownerNotFound: readonly string[]
  readonly ownerOf: (
    context: CallerContext,
    params: Readonly<Record<string, string>>,
  ) => KeyOwner | Promise<KeyOwner>
}

/** Creating, listing and revoking API keys. */
export function keyEndpoints(
  { path, permission, tag, summaries, params, keyParam, ownerOf, ...texts }: OwnedKeys,
  { auth: { keys }, now }: KeyEndpointsDeps,
): Endpoint[] {
  const example = { ...apiKeyExample, ...texts.example }
  const ownerErrors = texts.ownerNotFound.length === 0 ? {} : { not_found: texts.ownerNotFound }
  return [
    endpoint({
      method: 'POST',
      path,
      permission,
      credential: 'jwt',
      tag,
      summary: summaries.create,
      description: 'Requires a JWT. Only this response contains the key itself.',
      params,
      body: jsonBody(newApiKey, {
        example: { name: example.name },
        read: (body) => readNewApiKey(body, now()),
      }),
      responses: {
        200: {
          description: 'The key.',
          content: json(createdApiKey, { ...example, key: 'sk-svc-v1-…' }),
        },
      },
      errors: {
        ...ownerErrors,
        unprocessable: [
          '"name" must have 1 to 100 characters.',
          { code: 'too_many_api_keys', message: texts.limitReached },
        ],
      },
      async handle({ params, body, context, set }) {
        const key = await keys.create(actorOf(context), await ownerOf(context, params), body)
        set.headers['cache-control'] = 'no-store'
        return renderCreatedApiKey(key)
      },
    }),

    endpoint({
      method: 'GET',
      path,
      permission,
      tag,
      summary: summaries.list,
      description: 'Newest first. Expired keys are listed, revoked ones are not.',
      params,
      query: pageQuery,
      responses: {
        200: pageResponse('A page of keys.', apiKeyRecord, { ...example, last_used_at: null }),
      },
      errors: { ...ownerErrors, unprocessable: '"limit" must be a whole number from 1 to 100.' },
      async handle({ params, query, context }) {
        const { userId } = await ownerOf(context, params)
        return renderPage(await keys.list(userId, query), renderApiKey)
      },
    }),

    endpoint({
      method: 'DELETE',
      path: `${path}/:${keyParam}`,
      permission,
      tag,
      summary: summaries.revoke,
      description: 'The key stops working on every replica within a second.',
      params: { ...params, [keyParam]: 'The id of the key.' },
      responses: { 200: deletedResponse('The key is revoked.', 'api_key.deleted', example.id) },
      errors: { not_found: [...texts.ownerNotFound, texts.keyNotFound(example.id).message] },
      async handle({ params, context }) {
        const id = params[keyParam] ?? ''
        const { userId } = await ownerOf(context, params)
        const isRevoked = isUuid(id) && (await keys.revoke(actorOf(context), userId, id))
        if (!isRevoked) throw texts.keyNotFound(id)
        return { id, object: 'api_key.deleted', deleted: true }
      },
    }),
  ]
}
