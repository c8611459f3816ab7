import { AppError } from '#lib/errors.ts'
import { parseJson } from '#lib/json.ts'

export type Sort = 'name' | 'created_at' | 'updated_at' | 'bytes'

export type Order = 'asc' | 'desc'

/** Behind which item a page begins. What is added or taken away before it moves nothing. */
export type PagePosition = {
  readonly kind: 'file' | 'folder'
  readonly sortKey: string
  readonly id: string
}

const cursorCharsMax = 2_000
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const instant = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/

/** Opaque to clients: nothing in it is a secret, and nothing in it is trusted. */
export function writeCursor(sort: Sort, order: Order, { kind, sortKey, id }: PagePosition): string {
  return Buffer.from(JSON.stringify([sort, order, kind, sortKey, id])).toString('base64url')
}

/** Throws a 422 for what was not made for this sort and order. */
export function readCursor(text: string, sort: Sort, order: Order): PagePosition {
  const parts =
    text.length > cursorCharsMax ? null : parseJson(Buffer.from(text, 'base64url').toString())
  if (Array.isArray(parts) && parts[0] === sort && parts[1] === order) {
    const [, , kind, sortKey, id] = parts
    const isPlace =
      (kind === 'file' || kind === 'folder') && typeof id === 'string' && uuid.test(id)
    if (isPlace && typeof sortKey === 'string' && isKeyOf(sort, sortKey))
      return { kind, sortKey, id }
  }
  throw new AppError('unprocessable', '"cursor" must be the "next" of a page of this list.', {
    param: 'cursor',
    code: 'invalid_cursor',
  })
}

function isKeyOf(sort: Sort, key: string): boolean {
  switch (sort) {
    case 'name':
      return key.isWellFormed() && !key.includes('\0')
    case 'bytes':
      return /^\d{1,18}$/.test(key)
    default:
      return instant.test(key) && !Number.isNaN(Date.parse(key))
  }
}
