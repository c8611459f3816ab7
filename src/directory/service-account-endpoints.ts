import { Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { deleted, idExample, listExample, listOf, listPage, pageQuery } from '#api/shapes.ts'
import {
  apiKeyExample,
  apiKeyRecord,
  createdApiKey,
  newApiKey,
  readNewApiKey,
  renderApiKey,
  renderCreatedApiKey,
} from '#api-keys/record.ts'
import { actorOf } from '#audit/audit.ts'
import { AppError } from '#lib/errors.ts'
import { isStorable, readLabel } from '#lib/label.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema } from '#lib/unprocessable.ts'
import { isUuid } from '#lib/uuid.ts'
import {
  type ServiceAccounts,
  serviceAccountNotFound,
  unknownGroupError,
} from './service-accounts.ts'
import { serviceAccountExample } from './user-endpoints.ts'
import { renderUserDetails, userDetailsRecord } from './user-record.ts'

export type ServiceAccountEndpointsDeps = { serviceAccounts: ServiceAccounts; now: () => Date }

/** Users that are programs, and their API keys. */
export function serviceAccountEndpoints({
  serviceAccounts,
  now,
}: ServiceAccountEndpointsDeps): Endpoint[] {
  return [
    endpoint({
      method: 'POST',
      path: '/v1/service-accounts',
      permission: 'can_manage_groups',
      tag: 'Directory',
      summary: 'Create a service account',
      description:
        'A user that is a program. It has API keys, no tokens, and the groups given here. `GET /v1/users?kind=service` lists the accounts.',
      body: jsonBody(newServiceAccount, {
        example: { name: 'nightly import', groups: ['users'] },
        read: readNewServiceAccount,
      }),
      responses: {
        200: {
          description: 'The account.',
          content: json(userDetailsRecord, serviceAccountExample),
        },
      },
      errors: {
        unprocessable: ['"name" must have 1 to 100 characters.', unknownGroupError],
        unknown_field: '"kind" is not a known field.',
      },
      handle: async ({ body, context }) =>
        renderUserDetails(await serviceAccounts.create(actorOf(context), body)),
    }),

    endpoint({
      method: 'DELETE',
      path: '/v1/service-accounts/:id',
      permission: 'can_manage_groups',
      tag: 'Directory',
      summary: 'Delete a service account',
      description:
        'Its API keys stop working on every replica within a second. What it created stays.',
      params: idParam,
      responses: {
        200: {
          description: 'The account is deleted.',
          content: json(deleted('service_account.deleted'), {
            id: idExample,
            object: 'service_account.deleted',
            deleted: true,
          }),
        },
      },
      errors: { not_found: notFound },
      async handle({ params, context }) {
        const id = readId(params.id)
        await serviceAccounts.remove(actorOf(context), id)
        return { id, object: 'service_account.deleted', deleted: true }
      },
    }),

    endpoint({
      method: 'POST',
      path: '/v1/service-accounts/:id/api-keys',
      permission: 'can_manage_groups',
      credential: 'jwt',
      tag: 'Directory',
      summary: 'Create an API key for a service account',
      description: 'Requires a JWT. Only this response contains the key itself.',
      params: idParam,
      body: jsonBody(newApiKey, {
        example: { name: 'import host' },
        read: (body) => readNewApiKey(body, now()),
      }),
      responses: {
        200: {
          description: 'The key.',
          content: json(createdApiKey, { ...keyExample, key: 'sk-svc-v1-…' }),
        },
      },
      errors: {
        not_found: notFound,
        unprocessable: [
          '"name" must have 1 to 100 characters.',
          {
            code: 'too_many_api_keys',
            message: 'This service account has 100 API keys, which is the limit; delete one first.',
          },
        ],
      },
      async handle({ params: { id }, body, context, set }) {
        const key = await serviceAccounts.createKey(actorOf(context), readId(id), body)
        set.headers['cache-control'] = 'no-store'
        return renderCreatedApiKey(key)
      },
    }),

    endpoint({
      method: 'GET',
      path: '/v1/service-accounts/:id/api-keys',
      permission: 'can_manage_groups',
      tag: 'Directory',
      summary: 'List the API keys of a service account',
      description: 'Newest first. Expired keys are listed, revoked ones are not.',
      params: idParam,
      query: pageQuery,
      responses: {
        200: {
          description: 'A page of keys.',
          content: json(listOf(apiKeyRecord), listExample({ ...keyExample, last_used_at: null })),
        },
      },
      errors: {
        unprocessable: '"limit" must be a whole number from 1 to 100.',
        not_found: notFound,
      },
      async handle({ params: { id }, query }) {
        const page = await serviceAccounts.listKeys(readId(id), { after: undefined, ...query })
        return listPage(page.records.map(renderApiKey), page.hasMore)
      },
    }),

    endpoint({
      method: 'DELETE',
      path: '/v1/service-accounts/:id/api-keys/:key_id',
      permission: 'can_manage_groups',
      tag: 'Directory',
      summary: 'Revoke an API key of a service account',
      description: 'The key stops working on every replica within a second.',
      params: { ...idParam, key_id: 'The id of the key.' },
      responses: {
        200: {
          description: 'The key is revoked.',
          content: json(deleted('api_key.deleted'), {
            id: keyExample.id,
            object: 'api_key.deleted',
            deleted: true,
          }),
        },
      },
      errors: { not_found: [notFound, keyNotFound(keyExample.id)] },
      async handle({ params: { id, key_id: keyId }, context }) {
        const revoke = () => serviceAccounts.revokeKey(actorOf(context), readId(id), keyId)
        if (!isUuid(keyId) || !(await revoke())) {
          throw new AppError('not_found', keyNotFound(keyId), { param: 'key_id' })
        }
        return { id: keyId, object: 'api_key.deleted', deleted: true }
      },
    }),
  ]
}

const groupsMax = 100
const groupCharsMax = 1_000

const newServiceAccount = Type.Object(
  {
    name: Type.String({ description: '1 to 100 characters.' }),
    groups: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: groupCharsMax }), {
        description: 'The names of its groups.',
        maxItems: groupsMax,
      }),
    ),
  },
  { additionalProperties: false },
)
const checker = compileChecker(newServiceAccount)

function readNewServiceAccount(body: unknown): { name: string; groups: string[] } {
  if (!checker.check(body)) throw refusedBySchema(checker.firstError(body))
  const groups = [...new Set(body.groups)]
  const invalid = groups.findIndex((name) => !isStorable(name))
  if (invalid !== -1) {
    throw refused(`groups[${invalid}]`, `"groups[${invalid}]" must be the name of a group.`)
  }
  return { name: readLabel(body.name), groups }
}

function readId(id: string): string {
  if (isUuid(id)) return id.toLowerCase()
  throw serviceAccountNotFound(id)
}

function keyNotFound(id: string): string {
  return `This service account has no API key with the id "${id}".`
}

const idParam = { id: 'The id of the service account.' }
const notFound = `There is no service account with the id "${idExample}".`
const keyExample = {
  ...apiKeyExample,
  id: '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a61',
  name: 'import host',
}
