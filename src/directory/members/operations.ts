import { deleted, instantExample, listExample, listOf, pageQuery } from '#api/shapes.ts'
import { lastAdminFailure } from '#directory/change-store.ts'
import { json, operation } from '#docs/operation.ts'
import { managedFailure } from './members.ts'
import { type MemberRecord, memberRecord } from './schema.ts'

const tag = 'Directory'
const path = { id: 'The name of the group, percent-encoded.' }
const memberPath = { ...path, user_id: 'The id of the user.' }

const member: MemberRecord = {
  id: '5f2b1c9e-7a34-8d60-9e11-c4a8b7d20f35',
  object: 'group.member',
  kind: 'user',
  subject: 'ann@example.org',
  name: 'Ann Example',
  disabled_at: null,
  sources: ['idp', 'manual'],
  granted_by: '9c81d7f0-13be-8a52-b6d4-0e7f5a2c6b18',
  granted_at: instantExample,
}
const absentGroup = 'There is no group with the id "editors".'

export const memberOperations = {
  list: operation({
    tag,
    summary: 'List the members of a group',
    description:
      'By id. Members have two sources, which are kept apart: their last token (`idp`), and what was given by hand (`manual`). A new token never takes away what was given by hand.',
    path,
    query: pageQuery,
    answers: {
      200: {
        description: 'A page of members.',
        content: json(listOf(memberRecord), listExample(member)),
      },
    },
    errors: {
      unprocessable: '"limit" must be a whole number from 1 to 100.',
      not_found: absentGroup,
    },
  }),
  add: operation({
    tag,
    summary: 'Put a user into a group',
    description:
      'By hand, whatever their tokens say. Nothing changes for who was put there before.',
    path: memberPath,
    answers: { 200: { description: 'The member.', content: json(memberRecord, member) } },
    errors: {
      not_found: [absentGroup, `There is no user with the id "${member.id}".`],
      conflict: lastAdminFailure,
    },
  }),
  remove: operation({
    tag,
    summary: 'Take a user out of a group',
    description: 'Takes back what was given by hand; who is in it by their token too stays in it.',
    path: memberPath,
    answers: {
      200: {
        description: 'It is taken back.',
        content: json(deleted('group.member.deleted'), {
          id: member.id,
          object: 'group.member.deleted',
          deleted: true,
        }),
      },
    },
    errors: {
      not_found: `The user with the id "${member.id}" is not in this group.`,
      conflict: [managedFailure, lastAdminFailure],
    },
  }),
}
