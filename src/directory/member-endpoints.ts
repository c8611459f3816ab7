import { type Static, Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json } from '#api/endpoint.ts'
import {
  deletedResponse,
  instantExample,
  nullable,
  pageQuery,
  pageResponse,
  renderPage,
} from '#api/shapes.ts'
import { actorOf } from '#audit/audit.ts'
import { lastAdminError } from './change-store.ts'
import { groupIdParam, readGroupId, unknownGroup } from './group-record.ts'
import { idpMembershipError, type Member, type Members } from './member-store.ts'
import { readUserId, renderIdentity, sources, userIdentity } from './user-record.ts'

/** The members of groups. */
export function memberEndpoints(members: Members): Endpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/v1/groups/:id/members',
      permission: 'can_manage_groups',
      tag: 'Directory',
      summary: 'List the members of a group',
      description:
        'By id. A membership has one or both of two sources: the last token (`idp`) and a manual addition (`manual`). A new token never removes a manual membership.',
      params: groupIdParam,
      query: pageQuery,
      responses: { 200: pageResponse('A page of members.', memberRecord, memberExample) },
      errors: {
        unprocessable: '"limit" must be a whole number from 1 to 100.',
        not_found: unknownGroup,
      },
      handle: async ({ params: { id }, query }) =>
        renderPage(await members.list(readGroupId(id), query), renderMember),
    }),

    endpoint({
      method: 'PUT',
      path: '/v1/groups/:id/members/:user_id',
      permission: 'can_manage_groups',
      tag: 'Directory',
      summary: 'Add a user to a group',
      description: 'Adds a manual membership, independent of tokens. Repeating it changes nothing.',
      params: memberParams,
      responses: {
        200: { description: 'The member.', content: json(memberRecord, memberExample) },
      },
      errors: {
        not_found: [unknownGroup, `There is no user with the id "${memberExample.id}".`],
        conflict: lastAdminError,
      },
      async handle({ params: { id, user_id: userId }, context }) {
        const group = readGroupId(id)
        return renderMember(await members.add(actorOf(context), group, readUserId(userId)))
      },
    }),

    endpoint({
      method: 'DELETE',
      path: '/v1/groups/:id/members/:user_id',
      permission: 'can_manage_groups',
      tag: 'Directory',
      summary: 'Remove a user from a group',
      description: 'Removes the manual membership; a membership by token stays.',
      params: memberParams,
      responses: {
        200: deletedResponse(
          'The manual membership is removed.',
          'group.member.deleted',
          memberExample.id,
        ),
      },
      errors: {
        not_found: `The user with the id "${memberExample.id}" is not in this group.`,
        conflict: [idpMembershipError, lastAdminError],
      },
      async handle({ params, context }) {
        const userId = readUserId(params.user_id)
        await members.remove(actorOf(context), readGroupId(params.id), userId)
        return { id: userId, object: 'group.member.deleted', deleted: true }
      },
    }),
  ]
}

const memberParams = { ...groupIdParam, user_id: 'The id of the user.' }

const memberRecord = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'The id of the user.' }),
    object: Type.Literal('group.member'),
    ...userIdentity,
    sources,
    granted_by: nullable(Type.String({ format: 'uuid' }), 'Who added the manual membership.'),
    granted_at: nullable(Type.String({ format: 'date-time' }), 'When it was added.'),
  },
  { $id: 'GroupMember' },
)
type MemberRecord = Static<typeof memberRecord>

function renderMember(member: Member): MemberRecord {
  return {
    id: member.id,
    object: 'group.member',
    ...renderIdentity(member),
    sources: [...member.sources],
    granted_by: member.grantedBy,
    granted_at: member.grantedAt?.toISOString() ?? null,
  }
}

const memberExample: MemberRecord = {
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
