import { Type } from '@sinclair/typebox'
import { type CallerContext, type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { deletedResponse, idExample, pageQuery, pageResponse, renderPage } from '#api/shapes.ts'
import { actorOf } from '#audit/audit.ts'
import type { Auth } from '#auth/auth.ts'
import { requirePermission } from '#auth/guard.ts'
import type { KeyOwner } from '#auth/key-store.ts'
import { groupsPermission, type Permission } from '#auth/permissions.ts'
import { AppError } from '#lib/errors.ts'
import { refused } from '#lib/unprocessable.ts'
import { isUuid } from '#lib/uuid.ts'
import {
  apiKeyExample,
  apiKeyRecord,
  changedApiKey,
  createdApiKey,
  newApiKey,
  readKeyChange,
  readNewApiKey,
  readRotation,
  renderApiKey,
  renderCreatedApiKey,
  rotation,
} from './record.ts'

type KeyEndpointsDeps = { auth: Pick<Auth, 'keys'>; now: () => Date }

const everyUser = 'all'

const keysQuery = Type.Object({
  ...pageQuery.properties,
  user_id: Type.Optional(
    Type.String({
      description: `The owner of the keys, or \`${everyUser}\`; by default you. Keys of others require \`${groupsPermission}\`.`,
    }),
  ),
})

/** The caller's own API keys; administrators also list, change and revoke those of others. */
export function apiKeyEndpoints(deps: KeyEndpointsDeps): Endpoint[] {
  const keys: OwnedKeys = {
    path: '/v1/api-keys',
    permission: 'can_access_api',
    tag: 'API keys',
    summaries: {
      create: 'Create an API key',
      list: 'List your API keys',
      change: 'Change an API key',
      rotate: 'Replace the secret of an API key',
      revoke: 'Revoke an API key',
    },
    ofOthers: ` With \`${groupsPermission}\` also keys of others.`,
    example: { id: idExample, name: 'nightly report' },
    limitReached: 'You have 100 API keys, which is the limit; delete one first.',
    keyParam: 'id',
    keyNotFound: () => new AppError('not_found', 'You have no API key with this id.'),
    params: {},
    query: keysQuery,
    ownerNotFound: [],
    ownerOf({ principal: { userId, subject } }) {
      return { userId, subject, kind: 'user' }
    },
    listedUser: ({ principal }, _params, userId = principal.userId) => {
      if (userId !== principal.userId) requirePermission(principal, groupsPermission)
      if (userId === everyUser) return undefined
      if (!isUuid(userId)) {
        throw refused('user_id', `"user_id" must be the id of a user, or "${everyUser}".`)
      }
      return userId
    },
    changedUser: ({ principal }) =>
      principal.permissions.has(groupsPermission) ? undefined : principal.userId,
  }
  return keyEndpoints(keys, deps)
}

type PathParams = Readonly<Record<string, string>>

/** The API keys of one kind of owner. */
type OwnedKeys = {
  readonly path: string
  readonly permission: Permission
  readonly tag: string
  readonly summaries: {
    readonly [Operation in 'create' | 'list' | 'change' | 'rotate' | 'revoke']: string
  }
  /** Which other keys can be changed and revoked: a sentence with a leading space, or empty. */
  readonly ofOthers: string
  readonly example: { readonly id: string; readonly name: string }
  readonly limitReached: string
  /** The path parameter with the id of a key. */
  readonly keyParam: string
  readonly keyNotFound: (id: string) => AppError
  /** The path parameters of the owner. */
  readonly params: PathParams
  readonly query: typeof pageQuery | typeof keysQuery
  readonly ownerNotFound: readonly string[]
  readonly ownerOf: (context: CallerContext, params: PathParams) => KeyOwner | Promise<KeyOwner>
  /** The user whose keys are listed; undefined: of every user. */
  readonly listedUser: UserOf
  /** The user whose keys can be changed and revoked; undefined: of every user. */
  readonly changedUser: UserOf
}

type UserOf = (
  context: CallerContext,
  params: PathParams,
  userId?: string,
) => string | undefined | Promise<string | undefined>

/** Creating, listing, changing, rotating and revoking API keys. */
export function keyEndpoints(
  { path, permission, tag, summaries, ownerOf, ...keys }: OwnedKeys,
  { auth, now }: KeyEndpointsDeps,
): Endpoint[] {
  const { params, keyParam, keyNotFound, ownerNotFound } = keys
  const example = { ...apiKeyExample, ...keys.example }
  const ownerErrors = ownerNotFound.length === 0 ? {} : { not_found: ownerNotFound }
  const keyErrors = { not_found: [...ownerNotFound, keyNotFound(example.id).message] }
  const keyParams = { ...params, [keyParam]: 'The id of the key.' }
  const keyPath = `${path}/:${keyParam}`
  const withSecret = { ...example, key: 'sk-svc-v1-…' }

  const idIn = (given: PathParams): string => {
    const id = given[keyParam] ?? ''
    if (!isUuid(id)) throw keyNotFound(id)
    return id
  }
  const found = <T>(id: string, result: T | undefined): T => {
    if (result === undefined) throw keyNotFound(id)
    return result
  }

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
        example: { name: example.name, models: example.models, scopes: example.scopes },
        read: (body) => readNewApiKey(body, now()),
      }),
      responses: {
        200: { description: 'The key.', content: json(createdApiKey, withSecret) },
      },
      errors: {
        ...ownerErrors,
        unprocessable: [
          '"name" must have 1 to 100 characters.',
          { code: 'too_many_api_keys', message: keys.limitReached },
        ],
      },
      async handle({ params, body, context, set }) {
        const key = await auth.keys.create(actorOf(context), await ownerOf(context, params), body)
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
      query: keys.query,
      responses: {
        200: pageResponse('A page of keys.', apiKeyRecord, { ...example, last_used_at: null }),
      },
      errors: { ...ownerErrors, unprocessable: '"limit" must be a whole number from 1 to 100.' },
      async handle({ params, query, context }) {
        const asked = 'user_id' in query ? query.user_id : undefined
        const userId = await keys.listedUser(context, params, asked)
        return renderPage(await auth.keys.list(userId, query), renderApiKey)
      },
    }),

    endpoint({
      method: 'PATCH',
      path: keyPath,
      permission,
      credential: 'jwt',
      tag,
      summary: summaries.change,
      description: `Requires a JWT. Absent fields keep their values. The change takes effect on every replica within a second.${keys.ofOthers}`,
      params: keyParams,
      body: jsonBody(changedApiKey, {
        example: { models: example.models },
        read: (body) => readKeyChange(body, now()),
      }),
      responses: {
        200: {
          description: 'The key.',
          content: json(apiKeyRecord, { ...example, last_used_at: null }),
        },
      },
      errors: { ...keyErrors, unprocessable: '"scopes" must not be empty.' },
      async handle({ params, body, context }) {
        const keyId = idIn(params)
        const userId = await keys.changedUser(context, params)
        const changed = await auth.keys.change(actorOf(context), { keyId, userId }, body)
        return renderApiKey(found(keyId, changed))
      },
    }),

    endpoint({
      method: 'POST',
      path: `${keyPath}/rotate`,
      permission,
      credential: 'jwt',
      tag,
      summary: summaries.rotate,
      description:
        'Requires a JWT. The key keeps its id, name and rights. The present secret works for `overlap_seconds` more seconds; a secret that an earlier rotation replaced stops working. Only this response contains the new secret.',
      params: keyParams,
      body: jsonBody(rotation, {
        isOptional: true,
        example: { overlap_seconds: 3_600 },
        read: readRotation,
      }),
      responses: {
        200: { description: 'The key.', content: json(createdApiKey, withSecret) },
      },
      errors: keyErrors,
      async handle({ params, body, context, set }) {
        const keyId = idIn(params)
        const { userId } = await ownerOf(context, params)
        const overlapS = body ?? readRotation({})
        const rotated = await auth.keys.rotate(actorOf(context), { keyId, userId }, { overlapS })
        set.headers['cache-control'] = 'no-store'
        return renderCreatedApiKey(found(keyId, rotated))
      },
    }),

    endpoint({
      method: 'DELETE',
      path: keyPath,
      permission,
      tag,
      summary: summaries.revoke,
      description: `The key stops working on every replica within a second.${keys.ofOthers}`,
      params: keyParams,
      responses: { 200: deletedResponse('The key is revoked.', 'api_key.deleted', example.id) },
      errors: keyErrors,
      async handle({ params, context }) {
        const keyId = idIn(params)
        const userId = await keys.changedUser(context, params)
        const isRevoked = await auth.keys.revoke(actorOf(context), { keyId, userId })
        if (!isRevoked) throw keyNotFound(keyId)
        return { id: keyId, object: 'api_key.deleted', deleted: true }
      },
    }),
  ]
}
