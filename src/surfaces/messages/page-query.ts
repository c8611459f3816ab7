import { type TSchema, Type } from '@sinclair/typebox'
import type { QueryReader } from '#api/endpoint.ts'
import { nullable } from '#api/shapes.ts'
import { AppError } from '#lib/errors.ts'

/** A page of a list as this protocol has it, after or before an item; neither: the first. */
export type IdPage = {
  readonly limit: number
  readonly afterId: string | null
  readonly beforeId: string | null
}

const limitDefault = 20
const limitMax = 1_000

/** Clients of this protocol expect status 400. `what` names the items. */
export function pageQuery(what: string): QueryReader<IdPage> {
  return {
    schema: Type.Object({
      limit: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: limitMax,
          default: limitDefault,
          description: 'Items per page.',
        }),
      ),
      after_id: Type.Optional(Type.String({ description: `Only ${what} after this id.` })),
      before_id: Type.Optional(
        Type.String({ description: `Only ${what} before this id. Not with \`after_id\`.` }),
      ),
    }),
    read(query) {
      const limit = query.get('limit') ?? String(limitDefault)
      if (!/^\d{1,4}$/.test(limit) || Number(limit) < 1 || Number(limit) > limitMax) {
        throw invalidQuery('limit', `must be an integer from 1 to ${limitMax}`)
      }
      const afterId = query.get('after_id') || null
      const beforeId = query.get('before_id') || null
      if (afterId !== null && beforeId !== null) {
        throw invalidQuery('before_id', 'cannot be combined with after_id')
      }
      return { limit: Number(limit), afterId, beforeId }
    },
  }
}

export function invalidQuery(param: string, predicate: string): AppError {
  return new AppError('invalid_request', `${param} ${predicate}.`, { param })
}

export function idPage(item: TSchema, id: string) {
  return Type.Object(
    {
      data: Type.Array(item),
      has_more: Type.Boolean({ description: 'Whether another page follows in this direction.' }),
      first_id: nullable(Type.String(), 'The id of the first item of this page.'),
      last_id: nullable(Type.String(), 'The id of its last item.'),
    },
    { $id: id },
  )
}
