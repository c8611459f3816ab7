import { type Static, Type } from '@sinclair/typebox'
import { nullable } from '#api/shapes.ts'
import { renderIdentity, sources, userIdentity } from '#directory/users/schema.ts'
import type { Member } from './members.ts'

/** Somebody who is in a group. */
export const memberRecord = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'The id of the user.' }),
    object: Type.Literal('group.member'),
    ...userIdentity,
    sources,
    granted_by: nullable(Type.String({ format: 'uuid' }), 'Who gave it by hand.'),
    granted_at: nullable(Type.String({ format: 'date-time' }), 'When it was given by hand.'),
  },
  { $id: 'GroupMember' },
)
export type MemberRecord = Static<typeof memberRecord>

export function renderMember(member: Member): MemberRecord {
  return {
    id: member.id,
    object: 'group.member',
    ...renderIdentity(member),
    sources: [...member.sources],
    granted_by: member.grantedBy,
    granted_at: member.grantedAt?.toISOString() ?? null,
  }
}
