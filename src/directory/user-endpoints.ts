import { Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { idExample, instantExample, pageQuery, pageResponse, renderPage } from '#api/shapes.ts'
import { actorOf } from '#audit/audit.ts'
import { readLabel } from '#lib/label.ts'
import { compileChecker } from '#lib/schema.ts'
import { refusedBySchema } from '#lib/unprocessable.ts'
import { lastAdminError } from './change-store.ts'
import {
  kind,
  readUserId,
  renderUser,
  renderUserDetails,
  type UserDetailsRecord,
  type UserRecord,
  userDetailsRecord,
  userRecord,
} from './user-record.ts'
import { idpNameError, type UserChange, type Users } from './user-store.ts'

/** Users and service accounts. */
export function userEndpoints(users: Users): Endpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/v1/users',
      permission: 'can_manage_groups',
      tag: 'Directory',
      summary: 'List the users',
      description:
        'Every user seen with a token, and the service accounts (`kind=service`), by name.',
      query: userListQuery,
      responses: { 200: pageResponse('A page of users.', userRecord, userExample) },
      errors: { unprocessable: '"kind" must be "user" or "service".' },
      handle: async ({ query: { q: text, kind, ...page } }) =>
        renderPage(await users.list({ text, kind }, page), renderUser),
    }),

    endpoint({
      method: 'GET',
      path: '/v1/users/:id',
      permission: 'can_manage_groups',
      tag: 'Directory',
      summary: 'Retrieve a user',
      params: userIdParam,
      responses: { 200: userResponse(userDetailsExample) },
      errors: { not_found: notFound },
      handle: async ({ params: { id } }) => renderUserDetails(await users.find(readUserId(id))),
    }),

    endpoint({
      method: 'PATCH',
      path: '/v1/users/:id',
      permission: 'can_manage_groups',
      tag: 'Directory',
      summary: 'Disable, enable or rename a user',
      description:
        'Tokens and API keys of a disabled user are refused on every replica within a second (401 `user_disabled`). Only service accounts can be renamed.',
      params: userIdParam,
      body: jsonBody(changedUser, { example: { disabled: true }, read: readChangedUser }),
      responses: { 200: userResponse({ ...userDetailsExample, disabled_at: instantExample }) },
      errors: {
        unprocessable: '"disabled" must be a boolean.',
        unknown_field: '"groups" is not a known field.',
        not_found: notFound,
        conflict: [idpNameError, lastAdminError],
      },
      handle: async ({ params: { id }, body, context }) =>
        renderUserDetails(await users.change(actorOf(context), readUserId(id), body)),
    }),
  ]
}

const searchCharsMax = 256

const userListQuery = Type.Object({
  q: Type.Optional(
    Type.String({
      description: `Plain text of at most ${searchCharsMax} characters: a part of the name or the subject, in any case.`,
      maxLength: searchCharsMax,
    }),
  ),
  kind: Type.Optional(kind),
  ...pageQuery.properties,
})

const changedUser = Type.Object(
  {
    disabled: Type.Optional(Type.Boolean({ description: 'Whether the user is disabled.' })),
    name: Type.Optional(Type.String({ description: 'Of a service account: 1 to 100 characters.' })),
  },
  { additionalProperties: false },
)
const changedUserChecker = compileChecker(changedUser)

function readChangedUser(body: unknown): UserChange {
  if (!changedUserChecker.check(body)) throw refusedBySchema(changedUserChecker.firstError(body))
  const { disabled, name } = body
  return {
    ...(disabled === undefined ? {} : { isDisabled: disabled }),
    ...(name === undefined ? {} : { name: readLabel(name) }),
  }
}

const userIdParam = { id: 'The id of the user.' }

const userExample: UserRecord = {
  id: '5f2b1c9e-7a34-8d60-9e11-c4a8b7d20f35',
  object: 'user',
  kind: 'user',
  subject: 'ann@example.org',
  name: 'Ann Example',
  disabled_at: null,
  last_seen_at: instantExample,
  created_at: instantExample,
  created_by: null,
}
const userDetailsExample: UserDetailsRecord = {
  ...userExample,
  groups: [{ id: 'editors', name: 'editors', sources: ['idp', 'manual'], is_known: true }],
  permissions: ['can_access_api', 'can_edit_config'],
}
export const serviceAccountExample: UserDetailsRecord = {
  ...userDetailsExample,
  id: idExample,
  kind: 'service',
  subject: `sluice-service:${idExample}`,
  name: 'nightly import',
  last_seen_at: null,
  created_by: userExample.id,
  groups: [{ id: 'users', name: 'users', sources: ['manual'], is_known: true }],
  permissions: ['can_access_api'],
}
const notFound = `There is no user with the id "${userExample.id}".`

function userResponse(example: UserDetailsRecord) {
  return { description: 'The user.', content: json(userDetailsRecord, example) }
}
