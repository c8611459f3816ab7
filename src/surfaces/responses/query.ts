import { Type } from '@sinclair/typebox'
import type { QueryReader } from '#api/endpoint.ts'
import { quote } from '#api/read-object.ts'
import { listPage } from '#api/shapes.ts'
import { AppError } from '#lib/errors.ts'
import type { Page, PageRequest, StoredItem } from '#responses/response.ts'
import { invalidField } from './read-object.ts'
import { showItem } from './show.ts'

/** The query parameters of lists and stored objects. Clients of this format expect status 400. */

const limitDefault = 20
const limitMax = 100

const include = Type.Optional(
  Type.Array(Type.String(), {
    description:
      'As in the request body: `reasoning.encrypted_content`, `file_search_call.results`. `include[]` is accepted as well.',
  }),
)

export const includeQuery: QueryReader<{ include: readonly string[] }> = {
  schema: Type.Object({ include }),
  read: (query) => ({ include: readInclude(query) }),
}

export const itemsQuery: QueryReader<{ page: PageRequest; include: readonly string[] }> = {
  schema: Type.Object({
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limitMax,
        default: limitDefault,
        description: 'Items per page.',
      }),
    ),
    after: Type.Optional(
      Type.String({ description: 'The id of the last item of the previous page.' }),
    ),
    order: Type.Optional(
      Type.Union([Type.Literal('asc'), Type.Literal('desc')], {
        default: 'desc',
        description: '`desc`: newest first.',
      }),
    ),
    include,
  }),
  read: (query) => ({
    page: {
      after: query.get('after') || null,
      limit: readInteger(query, 'limit', { min: 1, max: limitMax }) ?? limitDefault,
      order: readOrder(query),
    },
    include: readInclude(query),
  }),
}

type StreamQuery = { stream: boolean; startingAfter: number; include: readonly string[] }

export const streamQuery: QueryReader<StreamQuery> = {
  schema: Type.Object({
    stream: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Whether to stream the events, from the first.',
      }),
    ),
    starting_after: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: 'The `sequence_number` of the last received event. Requires `stream=true`.',
      }),
    ),
    include,
  }),
  read(query) {
    const stream = query.get('stream') ?? 'false'
    if (stream !== 'true' && stream !== 'false')
      throw invalidField('stream', 'must be true or false')
    const after = readInteger(query, 'starting_after', { min: 0, max: Number.MAX_SAFE_INTEGER })
    if (after !== null && stream === 'false') {
      throw invalidField('starting_after', 'requires stream=true')
    }
    return { stream: stream === 'true', startingAfter: after ?? -1, include: readInclude(query) }
  },
}

export function renderPage({ data, hasMore }: Page<StoredItem>, include: readonly string[]) {
  return listPage(
    data.map((item) => showItem(item, include)),
    hasMore,
  )
}

/** The object that was found; throws `not_found` if there is none. */
export function orNotFound<T>(
  kind: 'Conversation' | 'Response',
  found: T | undefined | false,
  id: string,
): T {
  if (found !== undefined && found !== false) return found
  throw new AppError('not_found', `${kind} with id ${quote(id)} not found.`, {
    param: `${kind.toLowerCase()}_id`,
  })
}

/** Clients write a list as `include[]=a`, `include=a` or `include[0]=a`. */
function readInclude(query: URLSearchParams): readonly string[] {
  return [...query].flatMap(([name, value]) => (/^include(\[\d*\])?$/.test(name) ? [value] : []))
}

function readOrder(query: URLSearchParams): PageRequest['order'] {
  const order = query.get('order') ?? 'desc'
  if (order === 'asc' || order === 'desc') return order
  throw invalidField('order', 'must be asc or desc')
}

function readInteger(
  query: URLSearchParams,
  name: string,
  { min, max }: { min: number; max: number },
): number | null {
  const text = query.get(name)
  if (text === null) return null
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= min && value <= max) return value
  throw invalidField(name, `must be an integer from ${min} to ${max}`)
}
