import type { Page, PageRequest, StoredItem } from '#responses/response.ts'
import { badField } from './read-object.ts'

const limitDefault = 20
const limitMax = 100

/** `after`, `limit` and `order` of a list. */
export function readPage(query: URLSearchParams): PageRequest {
  return {
    after: query.get('after') || null,
    limit: readWhole(query, 'limit', { from: 1, to: limitMax }) ?? limitDefault,
    order: readOrder(query),
  }
}

/** `include`, however the client's package writes a list: `include[]=a`, `include=a`, `include[0]=a`. */
export function readInclude(query: URLSearchParams): readonly string[] {
  return [...query].flatMap(([name, value]) => (/^include(\[\d*\])?$/.test(name) ? [value] : []))
}

export function readStreamQuery(query: URLSearchParams): {
  stream: boolean
  startingAfter: number
} {
  const stream = query.get('stream') ?? 'false'
  if (stream !== 'true' && stream !== 'false') throw badField('stream', 'must be true or false')
  const after = readWhole(query, 'starting_after', { from: 0, to: Number.MAX_SAFE_INTEGER })
  if (after !== null && stream === 'false') throw badField('starting_after', 'needs stream=true')
  return { stream: stream === 'true', startingAfter: after ?? -1 }
}

export function renderPage(page: Page<StoredItem>, show: (item: StoredItem) => StoredItem) {
  return {
    object: 'list',
    data: page.data.map(show),
    first_id: page.data[0]?.id ?? null,
    last_id: page.data.at(-1)?.id ?? null,
    has_more: page.hasMore,
  }
}

function readOrder(query: URLSearchParams): PageRequest['order'] {
  const order = query.get('order') ?? 'desc'
  if (order === 'asc' || order === 'desc') return order
  throw badField('order', 'must be asc or desc')
}

function readWhole(
  query: URLSearchParams,
  name: string,
  { from, to }: { from: number; to: number },
): number | null {
  const text = query.get(name)
  if (text === null) return null
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= from && value <= to) return value
  throw badField(name, `must be a whole number from ${from} to ${to}`)
}
