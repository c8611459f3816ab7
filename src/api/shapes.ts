import { type TSchema, Type } from '@sinclair/typebox'
import type { Page } from '#lib/page.ts'
import { json } from './endpoint.ts'

/** Wire shapes that many endpoints share. */

export const instant = (description: string) =>
  Type.String({ format: 'date-time', description: `${description}, in UTC.` })

/** As OpenAI's objects have it, in Unix seconds. */
export const unixTime = (description: string) => Type.Integer({ description })

export const nullable = <T extends TSchema>(schema: T, description: string) =>
  Type.Union([schema, Type.Null()], { description })

/** A list that is paged by the ids of its items. */
export function listOf<T extends TSchema>(item: T) {
  return Type.Object({
    object: Type.Literal('list'),
    data: Type.Array(item),
    has_more: Type.Boolean({ description: 'Whether another page follows.' }),
    first_id: nullable(Type.String(), 'The id of the first item of this page.'),
    last_id: nullable(Type.String(), 'The id of its last item: `after` of the next page.'),
  })
}

/** One page of a list, as `listOf` describes it. */
export function listPage<T extends { readonly id: string }>(data: readonly T[], hasMore: boolean) {
  return {
    object: 'list' as const,
    data,
    has_more: hasMore,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  }
}

/** The same with each item rendered. */
export function renderPage<T, R extends { readonly id: string }>(
  { items, hasMore }: Page<T>,
  render: (item: T) => R,
) {
  return listPage(items.map(render), hasMore)
}

/** The response with a page of a list. */
export function pageResponse<T extends { id: string }>(
  description: string,
  item: TSchema,
  example: T,
) {
  return { description, content: json(listOf(item), listPage([example], false)) }
}

/** The query of such a list: `{ limit: number, after?: string }`. Items have UUIDs. */
export const pageQuery = Type.Object({
  limit: Type.Integer({ description: 'Items per page.', minimum: 1, maximum: 100, default: 20 }),
  after: Type.Optional(
    Type.String({ format: 'uuid', description: 'The id of the last item of the previous page.' }),
  ),
})

/** The response to a deletion. */
export function deletedResponse(description: string, object: string, id: string) {
  const schema = Type.Object({
    id: Type.String(),
    object: Type.Literal(object),
    deleted: Type.Literal(true),
  })
  return { description, content: json(schema, { id, object, deleted: true }) }
}

export const idExample = '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a60'
export const instantExample = '2026-11-21T09:30:00.000Z'

/** The request header of a change that is made only if nothing else changed since. */
export const ifMatchHeader = Type.Object({
  'if-match': Type.Optional(
    Type.String({
      description: 'The `ETag` of the version to change, or several; `*` or absent: any version.',
    }),
  ),
})

export const ifNoneMatchHeader = Type.Object({
  'if-none-match': Type.Optional(
    Type.String({ description: 'The `ETag` of the version that the caller has, or several.' }),
  ),
})
