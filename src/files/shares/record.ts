import { type Static, Type } from '@sinclair/typebox'
import { idExample, instant, instantExample, nullable } from '#api/shapes.ts'
import { ownerId } from '#files/record.ts'
import { oneOf } from '#files/schema.ts'

const granteeRecord = Type.Object(
  {
    type: oneOf('user', 'group', 'everyone'),
    id: Type.String({ description: 'The id of a user, the name of a group, or `*`.' }),
    name: nullable(Type.String(), 'Null for everyone, and for a user who has never signed in.'),
  },
  { $id: 'Principal' },
)

export const granteeList = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(granteeRecord),
})

export const shareRecord = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('share'),
    principal: granteeRecord,
    role: oneOf('viewer', 'editor', 'manager'),
    inherited_from: nullable(
      Type.Object({
        type: Type.Literal('folder'),
        id: Type.String({ format: 'uuid' }),
        name: nullable(Type.String(), 'Null if the caller may not see the folder.'),
      }),
      'The folder above that is shared; change the share there.',
    ),
    granted_by: Type.String({ format: 'uuid' }),
    created_at: instant('Time of creation'),
  },
  { $id: 'Share', description: 'A role of a user, a group or everyone on a resource.' },
)
export type ShareRecord = Static<typeof shareRecord>
export type Grantee = ShareRecord['principal']
export type GrantedRole = ShareRecord['role']

export const shareList = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(shareRecord),
})

export const accessRecord = Type.Object(
  {
    object: Type.Literal('access'),
    user: Type.Object({
      id: Type.String({ format: 'uuid' }),
      name: nullable(Type.String(), 'Null for a user who has never signed in.'),
    }),
    role: nullable(oneOf('viewer', 'editor', 'manager', 'owner'), 'Null: no access.'),
    via: Type.Array(
      Type.Union([
        Type.Object({ type: Type.Literal('owner') }),
        Type.Object({ type: Type.Literal('share'), share: shareRecord }),
        Type.Object(
          {
            type: Type.Literal('collection'),
            collection: Type.Object({ id: Type.String({ format: 'uuid' }), name: Type.String() }),
          },
          { description: 'Search results include passages of the file. Grants no role on it.' },
        ),
      ]),
      { description: 'Every reason, ownership first.' },
    ),
  },
  { $id: 'Access' },
)
export type AccessRecord = Static<typeof accessRecord>

export const shareExample: ShareRecord = {
  id: idExample,
  object: 'share',
  principal: { type: 'group', id: 'users', name: 'users' },
  role: 'viewer',
  inherited_from: null,
  granted_by: ownerId,
  created_at: instantExample,
}
