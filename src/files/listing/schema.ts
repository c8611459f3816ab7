import { Type } from '@sinclair/typebox'
import { id, oneOf, optional, readFields, strict } from '#files/schema.ts'
import { AppError } from '#lib/errors.ts'
import { isRecord } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'
import type { ChildrenAsk, ListAsk, SearchAsk } from './listing.ts'

/** What lists are asked for, in a query or in a body; both have the same fields. */

const limitDefault = 20
const limitMax = 100
/** OpenAI's clients may ask for so many files; they get `limitMax`, and page on. */
const listLimitMax = 10_000
const queryCharsMax = 1_000
const wordCharsMax = 256
const cursorCharsMax = 2_000

const limit = (maximum: number) => optional(Type.Integer({ minimum: 1, maximum }))
const scope = () => optional(oneOf('mine', 'shared_with_me', 'all'))
const order = () => optional(oneOf('asc', 'desc'))
const word = () => Type.String({ minLength: 1, maxLength: wordCharsMax, pattern: '^[^\\u0000]*$' })
const cursor = () => optional(Type.String({ maxLength: cursorCharsMax }))

const list = compileChecker(
  strict({
    after: optional(id()),
    before: optional(id()),
    limit: limit(listLimitMax),
    order: order(),
    scope: scope(),
    purpose: optional(word()),
  }),
)
const children = compileChecker(
  strict({
    folder_id: optional(id()),
    scope: scope(),
    type: optional(oneOf('all', 'file', 'folder')),
    sort: optional(oneOf('name', 'created_at', 'updated_at', 'bytes')),
    order: order(),
    limit: limit(limitMax),
    cursor: cursor(),
  }),
)
const search = compileChecker(
  strict({
    q: optional(Type.String({ maxLength: queryCharsMax })),
    query: optional(Type.String({ maxLength: queryCharsMax })),
    folder_id: optional(id()),
    scope: scope(),
    mime_type: optional(word()),
    retrieval_status: optional(
      oneOf('RAG Available', 'Processing', 'Pending', 'Not Supported', 'Failed'),
    ),
    limit: limit(limitMax),
    cursor: cursor(),
  }),
)
const trash = compileChecker(strict({ limit: limit(limitMax) }))

export function readListAsk(query: unknown): ListAsk {
  const fields = readFields(list, fromQuery(query))
  if (fields.after && fields.before) {
    throw new AppError('unprocessable', '"before" does not go with "after".', { param: 'before' })
  }
  return {
    after: fields.after ?? null,
    before: fields.before ?? null,
    limit: Math.min(fields.limit ?? limitDefault, limitMax),
    order: fields.order ?? 'desc',
    scope: fields.scope ?? 'all',
    purpose: fields.purpose ?? null,
  }
}

export function readChildrenAsk(given: unknown): ChildrenAsk {
  const fields = readFields(children, given)
  return {
    folderId: fields.folder_id ?? null,
    scope: fields.scope ?? 'all',
    type: fields.type ?? 'all',
    sort: fields.sort ?? 'name',
    order: fields.order ?? 'asc',
    limit: fields.limit ?? limitDefault,
    cursor: fields.cursor ?? null,
  }
}

export function readSearchAsk(given: unknown): SearchAsk {
  const fields = readFields(search, given)
  const query = fields.query ?? fields.q ?? ''
  if (/\0/.test(query) || !query.isWellFormed()) {
    throw new AppError('unprocessable', '"query" must be plain text.', { param: 'query' })
  }
  return {
    query,
    folderId: fields.folder_id ?? null,
    scope: fields.scope ?? 'all',
    mimeType: fields.mime_type ?? null,
    retrievalStatus: fields.retrieval_status ?? null,
    limit: fields.limit ?? limitDefault,
    cursor: fields.cursor ?? null,
  }
}

export function readTrashAsk(query: unknown): { limit: number } {
  return { limit: readFields(trash, fromQuery(query)).limit ?? limitMax }
}

/**
 * A query has texts alone: its `limit` becomes a number where it is one, and `null`, or nothing, is
 * no folder.
 */
export function fromQuery(query: unknown): unknown {
  if (!isRecord(query)) return query
  const { limit: count, folder_id: folderId } = query
  return {
    ...query,
    ...(typeof count === 'string' && /^\d{1,9}$/.test(count) ? { limit: Number(count) } : {}),
    ...(folderId === '' || folderId === 'null' ? { folder_id: null } : {}),
  }
}
