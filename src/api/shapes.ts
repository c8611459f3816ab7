import { type TObject, type TSchema, Type } from '@sinclair/typebox'

/** Shapes that many answers have. */

export const instant = (description: string) =>
  Type.String({ format: 'date-time', description: `${description}, in UTC.` })

export const nullable = <T extends TSchema>(schema: T, description: string) =>
  Type.Union([schema, Type.Null()], { description })

/** A list that is paged by the ids of its members. */
export function listOf<T extends TSchema>(item: T) {
  return Type.Object({
    object: Type.Literal('list'),
    data: Type.Array(item),
    has_more: Type.Boolean({ description: 'Whether another page follows.' }),
    first_id: nullable(Type.String(), 'The id of the first member of this page.'),
    last_id: nullable(Type.String(), 'The id of its last member: `after` of the next page.'),
  })
}

export function listExample<T extends { id: string }>(item: T) {
  return { object: 'list', data: [item], has_more: false, first_id: item.id, last_id: item.id }
}

/** The query of such a list. */
export const pageQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({ description: 'Members of a page.', minimum: 1, maximum: 100, default: 20 }),
  ),
  after: Type.Optional(
    Type.String({ description: 'The id of the last member of the page before.' }),
  ),
})

/** What is answered to a deletion. */
export function deleted(object: string): TObject {
  return Type.Object({
    id: Type.String(),
    object: Type.Literal(object),
    deleted: Type.Literal(true),
  })
}

export const idExample = '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a60'
export const instantExample = '2026-11-21T09:30:00.000Z'

/** The headers of what has an entity tag. */
export const ifMatchHeader = Type.Object({
  'if-match': Type.Optional(
    Type.String({
      description:
        'The `ETag` of what the change is meant for, or several; `*`, or none: whatever there is.',
    }),
  ),
})

export const ifNoneMatchHeader = Type.Object({
  'if-none-match': Type.Optional(
    Type.String({ description: 'The `ETag` of what the caller has, or several.' }),
  ),
})
