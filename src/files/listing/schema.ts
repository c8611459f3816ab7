import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import { id, oneOf, optional, readFields, strict } from '#files/schema.ts'
import { AppError } from '#lib/errors.ts'
import { isRecord } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'
import type { ChildrenParams, ListParams, SearchParams } from './listing.ts'

/** What lists are asked for, in a query or in a body; both have the same fields. */

const limitDefault = 20
const limitMax = 100
/** OpenAI's clients may ask for so many files; they get `limitMax`, and page on. */
const listLimitMax = 10_000
const queryCharsMax = 1_000
const wordCharsMax = 256
const cursorCharsMax = 2_000

const limit = (maximum: number, otherwise = limitDefault) =>
  optional(Type.Integer({ minimum: 1, maximum }), {
    description: 'Members of a page.',
    default: otherwise,
  })
const scope = () =>
  optional(oneOf('mine', 'shared_with_me', 'all'), {
    description: "Whose: the caller's own, what others have given them, or both.",
    default: 'all',
  })
const order = (otherwise: 'asc' | 'desc') => optional(oneOf('asc', 'desc'), { default: otherwise })
const word = () => Type.String({ minLength: 1, maxLength: wordCharsMax, pattern: '^[^\\u0000]*$' })
const cursor = () =>
  optional(Type.String({ maxLength: cursorCharsMax }), {
    description: '`next` of the page before, with the same `sort` and `order`.',
  })

const list = strict({
  after: optional(id(), { description: 'The last file of the page before this one.' }),
  before: optional(id(), { description: 'The first file of the page behind this one.' }),
  limit: optional(Type.Integer({ minimum: 1, maximum: listLimitMax }), {
    description: `Files of a page; more than ${limitMax} count as ${limitMax}.`,
    default: limitDefault,
  }),
  order: order('desc'),
  scope: scope(),
  purpose: optional(word(), { description: 'Only those that were uploaded for it.' }),
})
export const childrenBody = strict({
  folder_id: optional(id(), { description: 'Absent or null: what is at the top.' }),
  scope: scope(),
  type: optional(oneOf('all', 'file', 'folder'), { default: 'all' }),
  sort: optional(oneOf('name', 'created_at', 'updated_at', 'bytes'), {
    description: 'Folders come first.',
    default: 'name',
  }),
  order: order('asc'),
  limit: limit(limitMax),
  cursor: cursor(),
})
export const searchBody = strict({
  q: optional(Type.String({ maxLength: queryCharsMax }), {
    description: 'Words that the name has, whatever their case.',
  }),
  query: optional(Type.String({ maxLength: queryCharsMax }), {
    description: 'The same, under the name that counts where both are given.',
  }),
  folder_id: optional(id(), { description: 'Anywhere below this folder.' }),
  scope: scope(),
  mime_type: optional(word(), { description: '`text/plain`, or all of a kind: `image/*`.' }),
  retrieval_status: optional(
    oneOf('RAG Available', 'Processing', 'Pending', 'Not Supported', 'Failed'),
  ),
  limit: limit(limitMax),
  cursor: cursor(),
})
const trash = strict({ limit: limit(limitMax, limitMax) })

/** The same as queries, which know no null. */
export const listQuery = queryOf(list)
export const childrenQuery = queryOf(childrenBody)
export const searchQuery = queryOf(searchBody)
export const trashQuery = queryOf(trash)

const listChecker = compileChecker(list)
const childrenChecker = compileChecker(childrenBody)
const searchChecker = compileChecker(searchBody)
const trashChecker = compileChecker(trash)

export function readListAsk(query: unknown): ListParams {
  const fields = readFields(listChecker, fromQuery(query))
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

export function readChildrenAsk(given: unknown): ChildrenParams {
  const fields = readFields(childrenChecker, given)
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

export function readSearchAsk(given: unknown): SearchParams {
  const fields = readFields(searchChecker, given)
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
  return { limit: readFields(trashChecker, fromQuery(query)).limit ?? limitMax }
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

function queryOf({ properties }: TObject): TObject {
  const fields = Object.entries<TSchema>(properties).map(([name, field]) => {
    const { anyOf, description, default: otherwise } = field
    return [name, Type.Optional<TSchema>({ ...anyOf[0], description, default: otherwise })]
  })
  return Type.Object(Object.fromEntries(fields))
}
