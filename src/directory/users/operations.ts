import { idExample, instantExample, listExample, listOf } from '#api/shapes.ts'
import { lastAdminFailure } from '#directory/change-store.ts'
import { json, operation } from '#docs/operation.ts'
import {
  changeUserBody,
  type UserDetailsRecord,
  type UserRecord,
  userDetailsRecord,
  userListQuery,
  userRecord,
} from './schema.ts'
import { managedNameFailure } from './users.ts'

const tag = 'Directory'
const path = { id: 'The id of the user.' }

const user: UserRecord = {
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
const details: UserDetailsRecord = {
  ...user,
  groups: [{ id: 'editors', name: 'editors', sources: ['idp', 'manual'], is_known: true }],
  permissions: ['can_access_api', 'can_edit_config'],
}
export const serviceAccountExample: UserDetailsRecord = {
  ...details,
  id: idExample,
  kind: 'service',
  subject: `sluice-service:${idExample}`,
  name: 'nightly import',
  last_seen_at: null,
  created_by: user.id,
  groups: [{ id: 'users', name: 'users', sources: ['manual'], is_known: true }],
  permissions: ['can_access_api'],
}
const absent = `There is no user with the id "${user.id}".`

export const userOperations = {
  list: operation({
    tag,
    summary: 'List the users',
    description:
      'Everybody who ever came with a token, and the service accounts (`kind=service`), by what they are called.',
    query: userListQuery,
    answers: {
      200: {
        description: 'A page of users.',
        content: json(listOf(userRecord), listExample(user)),
      },
    },
    errors: { unprocessable: '"kind" must be "user" or "service".' },
  }),
  find: operation({
    tag,
    summary: 'Show a user',
    path,
    answers: { 200: { description: 'The user.', content: json(userDetailsRecord, details) } },
    errors: { not_found: absent },
  }),
  change: operation({
    tag,
    summary: 'Disable, enable or rename a user',
    description:
      'The tokens and API keys of a disabled user are refused everywhere within a second (401 `user_disabled`). Only service accounts can be renamed.',
    path,
    body: { content: json(changeUserBody, { disabled: true }) },
    answers: {
      200: {
        description: 'The user.',
        content: json(userDetailsRecord, { ...details, disabled_at: instantExample }),
      },
    },
    errors: {
      unprocessable: '"disabled" must be a boolean.',
      unknown_field: '"groups" is not a known field.',
      not_found: absent,
      conflict: [managedNameFailure, lastAdminFailure],
    },
  }),
}
