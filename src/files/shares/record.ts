import { type Static, Type } from '@sinclair/typebox'
import { idExample, instant, instantExample, nullable } from '#api/shapes.ts'
import { ownerId } from '#files/record.ts'
import { oneOf } from '#files/schema.ts'
import type { Access, Share } from './shares.ts'

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
type ShareRecord = Static<typeof shareRecord>

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

export const shareExample: ShareRecord = {
  id: idExample,
  object: 'share',
  principal: { type: 'group', id: 'staff', name: 'staff' },
  role: 'viewer',
  inherited_from: null,
  granted_by: ownerId,
  created_at: instantExample,
}

export function renderShare(share: Share): ShareRecord {
  const { id, grantee, role, inheritedFrom, grantedBy, createdAt } = share
  return {
    id,
    object: 'share',
    principal: grantee,
    role,
    inherited_from: inheritedFrom === null ? null : { type: 'folder', ...inheritedFrom },
    granted_by: grantedBy,
    created_at: createdAt.toISOString(),
  }
}

export function renderAccess({
  user,
  role,
  isOwner,
  via,
  collections,
}: Access): Static<typeof accessRecord> {
  return {
    object: 'access',
    user,
    role,
    via: [
      ...(isOwner ? [{ type: 'owner' as const }] : []),
      ...via.map((share) => ({ type: 'share' as const, share: renderShare(share) })),
      ...collections.map((collection) => ({ type: 'collection' as const, collection })),
    ],
  }
}
