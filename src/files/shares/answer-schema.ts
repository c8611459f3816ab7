import { type Static, Type } from '@sinclair/typebox'
import { instant, nullable } from '#api/shapes.ts'
import { oneOf } from '#files/schema.ts'

/** What the routes of shares answer with. */

const principal = Type.Object(
  {
    type: oneOf('user', 'group', 'everyone'),
    id: Type.String({ description: 'The id of a user, the name of a group, or `*`.' }),
    name: nullable(Type.String(), 'Null for everyone, and for a user who was never seen.'),
  },
  { $id: 'Principal' },
)
export type PrincipalRecord = Static<typeof principal>

export const principalList = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(principal),
})
export type PrincipalList = Static<typeof principalList>

export const shareRecord = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('share'),
    principal,
    role: oneOf('viewer', 'editor', 'manager'),
    inherited_from: nullable(
      Type.Object({
        type: Type.Literal('folder'),
        id: Type.String({ format: 'uuid' }),
        name: nullable(Type.String(), 'Null where the caller may not see it.'),
      }),
      'The folder above that it comes from, and where it can be changed.',
    ),
    granted_by: Type.String({ format: 'uuid' }),
    created_at: instant('When it was given'),
  },
  { $id: 'Share', description: 'A role of somebody on something.' },
)
export type ShareRecord = Static<typeof shareRecord>

export const shareList = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(shareRecord),
})
export type ShareList = Static<typeof shareList>

export const accessRecord = Type.Object(
  {
    object: Type.Literal('access'),
    user: Type.Object({
      id: Type.String({ format: 'uuid' }),
      name: nullable(Type.String(), 'Null for one who was never seen.'),
    }),
    role: nullable(oneOf('viewer', 'editor', 'manager', 'owner'), 'Null: none.'),
    via: Type.Array(
      Type.Union([
        Type.Object({ type: Type.Literal('owner') }),
        Type.Object({ type: Type.Literal('share'), share: shareRecord }),
        Type.Object(
          {
            type: Type.Literal('collection'),
            collection: Type.Object({ id: Type.String({ format: 'uuid' }), name: Type.String() }),
          },
          { description: 'Shows passages of the file in search results, and gives no role on it.' },
        ),
      ]),
      { description: "Every reason, the owner's own first." },
    ),
  },
  { $id: 'Access' },
)
export type AccessRecord = Static<typeof accessRecord>

export const shareDeleted = Type.Object({
  id: Type.String({ format: 'uuid' }),
  object: Type.Literal('share'),
  deleted: Type.Literal(true),
})
export type ShareDeleted = Static<typeof shareDeleted>
