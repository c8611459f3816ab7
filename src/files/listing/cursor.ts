import { parseJson } from '#lib/json.ts'
import { refused } from '#lib/unprocessable.ts'

export type Sort = 'name' | 'created_at' | 'updated_at' | 'bytes'

export type Order = 'asc' | 'desc'

/** The item before a page. Unlike an offset, it is stable while items are added and deleted. */
export type PagePosition = {
  readonly kind: 'file' | 'folder'
  readonly sortKey: string
  readonly id: string
}

const cursorCharsMax = 2_000
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const instant = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/

/** Opaque to clients; the content is neither secret nor trusted. */
export function serializeCursor(
  sort: Sort,
  order: Order,
  { kind, sortKey, id }: PagePosition,
): string {
  return Buffer.from(JSON.stringify([sort, order, kind, sortKey, id])).toString('base64url')
}

/** Throws a 422 for a malformed cursor, or one of another sort or order. */
export function parseCursor(text: string, sort: Sort, order: Order): PagePosition {
  const parts =
    text.length > cursorCharsMax ? null : parseJson(Buffer.from(text, 'base64url').toString())
  if (Array.isArray(parts) && parts[0] === sort && parts[1] === order) {
    const [, , kind, sortKey, id] = parts
    const isNode = (kind === 'file' || kind === 'folder') && typeof id === 'string' && uuid.test(id)
    if (isNode && typeof sortKey === 'string' && isSortKey(sort, sortKey))
      return { kind, sortKey, id }
  }
  const sentence = '"cursor" must be the "next" of a page of this list.'
  throw refused('cursor', sentence, 'invalid_cursor')
}

function isSortKey(sort: Sort, key: string): boolean {
  switch (sort) {
    case 'name':
      return key.isWellFormed() && !key.includes('\0')
    case 'bytes':
      return /^\d{1,18}$/.test(key)
    default:
      return instant.test(key) && !Number.isNaN(Date.parse(key))
  }
}
