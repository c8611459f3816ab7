import { Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { deletedResponse, idExample, pageQuery } from '#api/shapes.ts'
import { keyEndpoints } from '#api-keys/endpoints.ts'
import { actorOf } from '#audit/audit.ts'
import type { Auth } from '#auth/auth.ts'
import type { KeyOwner } from '#auth/key-store.ts'
import { AppError } from '#lib/errors.ts'
import { isStorable, readLabel } from '#lib/label.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema } from '#lib/unprocessable.ts'
import { isUuid } from '#lib/uuid.ts'
import {
  type ServiceAccounts,
  serviceAccountNotFound,
  unknownGroupError,
} from './service-account-store.ts'
import { serviceAccountExample } from './user-endpoints.ts'
import { renderUserDetails, userDetailsRecord } from './user-record.ts'
import type { Users } from './user-store.ts'

type ServiceAccountEndpointsDeps = {
  auth: Auth
  users: Users
  serviceAccounts: ServiceAccounts
  now: () => Date
}

/** Users that are programs, and their API keys. */
export function serviceAccountEndpoints({
  auth,
  users,
  serviceAccounts,
  now,
}: ServiceAccountEndpointsDeps): Endpoint[] {
  const accountOf = async (params: Readonly<Record<string, string>>): Promise<KeyOwner> => {
    const { id: userId, subject, kind } = await users.find(readId(params['id'] ?? ''))
    if (kind !== 'service') throw serviceAccountNotFound(userId)
    return { userId, subject, kind }
  }
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
        200: deletedResponse('The account is deleted.', 'service_account.deleted', idExample),
      },
      errors: { not_found: notFound },
      async handle({ params, context }) {
        const id = readId(params.id)
        await serviceAccounts.remove(actorOf(context), id)
        return { id, object: 'service_account.deleted', deleted: true }
      },
    }),

    ...keyEndpoints(
      {
        path: '/v1/service-accounts/:id/api-keys',
        permission: 'can_manage_groups',
        tag: 'Directory',
        summaries: {
          create: 'Create an API key for a service account',
          list: 'List the API keys of a service account',
          change: 'Change an API key of a service account',
          rotate: 'Replace the secret of an API key of a service account',
          revoke: 'Revoke an API key of a service account',
        },
        example: { id: '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a61', name: 'import host' },
        limitReached:
          'This service account has 100 API keys, which is the limit; delete one first.',
        keyParam: 'key_id',
        keyNotFound,
        ofOthers: '',
        params: idParam,
        query: pageQuery,
        ownerNotFound: [notFound],
        ownerOf: (_context, params) => accountOf(params),
        listedUser: async (_context, params) => (await accountOf(params)).userId,
        changedUser: async (_context, params) => (await accountOf(params)).userId,
      },
      { auth, now },
    ),
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

function keyNotFound(id: string): AppError {
  const sentence = `This service account has no API key with the id "${id}".`
  return new AppError('not_found', sentence, { param: 'key_id' })
}

const idParam = { id: 'The id of the service account.' }
const notFound = `There is no service account with the id "${idExample}".`
