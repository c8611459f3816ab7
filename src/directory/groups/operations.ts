import {
  deleted,
  ifMatchHeader,
  instantExample,
  listExample,
  listOf,
  pageQuery,
} from '#api/shapes.ts'
import { lastAdminFailure } from '#directory/change-store.ts'
import { json, operation } from '#docs/operation.ts'
import { groupFailures } from './groups.ts'
import { changeGroupBody, createGroupBody, type GroupRecord, groupRecord } from './schema.ts'

const tag = 'Directory'
const path = { id: 'The name of the group, percent-encoded.' }
const tagHeader = { etag: 'Names this state of the group, for `If-Match`.' }

const group: GroupRecord = {
  id: 'editors',
  object: 'group',
  name: 'editors',
  description: 'Those who keep the portal in order',
  permissions: ['can_access_api', 'can_edit_config'],
  idp_claim: 'portal-editors',
  is_locked: false,
  is_shipped: false,
  members: 4,
  created_at: instantExample,
  updated_at: instantExample,
}
const absent = 'There is no group with the id "editors".'
const stale = 'This group has changed since you read it.'
const claimTaken = {
  code: 'idp_claim_taken',
  message: 'Another group stands for this word of the identity provider.',
}

export const groupOperations = {
  create: operation({
    tag,
    summary: 'Create a group',
    description:
      'A group holds permissions; what somebody may do is the union over their groups. A word in a token means the group that claims it (`idp_claim`), else the group of that name, unless that group claims another word.',
    body: {
      content: json(createGroupBody, { name: 'editors', permissions: ['can_access_api'] }),
    },
    answers: {
      200: { description: 'The group.', content: json(groupRecord, group), headers: tagHeader },
    },
    errors: {
      unknown_field: '"members" is not a known field.',
      unprocessable: [
        '"name" must have 1 to 100 characters.',
        {
          code: 'too_many_groups',
          message: 'There are 1000 groups, which is the limit; delete one first.',
        },
      ],
      conflict: [
        {
          code: 'group_exists',
          message: 'There is a group of this name already, whatever its case.',
        },
        claimTaken,
        lastAdminFailure,
      ],
    },
  }),
  list: operation({
    tag,
    summary: 'List the groups',
    description: 'By name. Words of tokens that mean no group are none.',
    query: pageQuery,
    answers: {
      200: {
        description: 'A page of groups.',
        content: json(listOf(groupRecord), listExample(group)),
      },
    },
    errors: { unprocessable: '"limit" must be a whole number from 1 to 100.' },
  }),
  find: operation({
    tag,
    summary: 'Show a group',
    path,
    answers: {
      200: { description: 'The group.', content: json(groupRecord, group), headers: tagHeader },
    },
    errors: { not_found: absent },
  }),
  change: operation({
    tag,
    summary: 'Change a group',
    description:
      'What is not given stays. The change acts at once on every token and every API key, on every replica.',
    path,
    headers: ifMatchHeader,
    body: { content: json(changeGroupBody, { permissions: ['can_access_api'] }) },
    answers: {
      200: { description: 'The group.', content: json(groupRecord, group), headers: tagHeader },
    },
    errors: {
      unprocessable: '"name" cannot be changed: shares and agents know the group by it.',
      unknown_field: '"members" is not a known field.',
      not_found: absent,
      conflict: [groupFailures.locked, claimTaken, lastAdminFailure],
      precondition_failed: stale,
    },
  }),
  remove: operation({
    tag,
    summary: 'Delete a group',
    description:
      'With who was in it by hand. Shares and agents that name it stay, and so does the word in tokens.',
    path,
    headers: ifMatchHeader,
    answers: {
      200: {
        description: 'It is deleted.',
        content: json(deleted('group.deleted'), {
          id: 'editors',
          object: 'group.deleted',
          deleted: true,
        }),
      },
    },
    errors: {
      not_found: absent,
      conflict: [groupFailures.locked, groupFailures.shipped, lastAdminFailure],
      precondition_failed: stale,
    },
  }),
}
