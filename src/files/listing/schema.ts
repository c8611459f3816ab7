import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import { id, oneOf, optional, parseFields, strict } from '#files/schema.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused } from '#lib/unprocessable.ts'

const limitDefault = 20
const limitMax = 100
/** OpenAI's clients may request this many files; they get `limitMax` and paginate. */
const listLimitMax = 10_000
const queryCharsMax = 1_000
const labelCharsMax = 256
const cursorCharsMax = 2_000

const limit = (maximum: number, defaultLimit = limitDefault) =>
  optional(Type.Integer({ minimum: 1, maximum }), {
    description: 'Items per page.',
    default: defaultLimit,
  })
const scope = () =>
  optional(oneOf('mine', 'shared_with_me', 'all'), {
    description: "The caller's own, those shared with the caller, or both.",
    default: 'all',
  })
const order = (defaultOrder: 'asc' | 'desc') =>
  optional(oneOf('asc', 'desc'), { default: defaultOrder })
const label = () =>
  Type.String({ minLength: 1, maxLength: labelCharsMax, pattern: '^[^\\u0000]*$' })
const cursor = () =>
  optional(Type.String({ maxLength: cursorCharsMax }), {
    description: '`next` of the previous page, with the same `sort` and `order`.',
  })

const listParams = strict({
  after: optional(id(), { description: 'The last file of the previous page.' }),
  before: optional(id(), { description: 'The first file of the next page.' }),
  limit: optional(Type.Integer({ minimum: 1, maximum: listLimitMax }), {
    description: `Files per page; at most ${limitMax} are returned.`,
    default: limitDefault,
  }),
  order: order('desc'),
  scope: scope(),
  purpose: optional(label(), { description: 'Only files that were uploaded for this purpose.' }),
})
export const childrenBody = strict({
  folder_id: optional(id(), { description: 'Absent or null: the top level.' }),
  scope: scope(),
  type: optional(oneOf('all', 'file', 'folder'), { default: 'all' }),
  sort: optional(oneOf('name', 'created_at', 'updated_at', 'bytes'), {
    description: 'Folders always come first.',
    default: 'name',
  }),
  order: order('asc'),
  limit: limit(limitMax),
  cursor: cursor(),
})
export const searchBody = strict({
  q: optional(Type.String({ maxLength: queryCharsMax }), {
    description: 'The terms that the name contains, in any case.',
  }),
  query: optional(Type.String({ maxLength: queryCharsMax }), {
    description: 'The same as `q`; takes precedence.',
  }),
  folder_id: optional(id(), { description: 'Searches all levels below this folder.' }),
  scope: scope(),
  mime_type: optional(label(), { description: '`text/plain`, or a whole type: `image/*`.' }),
  retrieval_status: optional(
    oneOf('RAG Available', 'Processing', 'Pending', 'Not Supported', 'Failed'),
  ),
  limit: limit(limitMax),
  cursor: cursor(),
})
const trashParams = strict({ limit: limit(limitMax, limitMax) })

const listChecker = compileChecker(listParams)
const childrenChecker = compileChecker(childrenBody)
const searchChecker = compileChecker(searchBody)
const trashChecker = compileChecker(trashParams)

export const listQuery = queryOf(listParams, (value) => {
  const fields = parseFields(listChecker, value)
  if (fields.after && fields.before) {
    throw refused('before', '"before" cannot be combined with "after".')
  }
  return {
    after: fields.after ?? null,
    before: fields.before ?? null,
    limit: Math.min(fields.limit ?? limitDefault, limitMax),
    order: fields.order ?? 'desc',
    scope: fields.scope ?? 'all',
    purpose: fields.purpose ?? null,
  }
})
export const childrenQuery = queryOf(childrenBody, parseChildren)
export const searchQuery = queryOf(searchBody, parseSearch)
export const trashQuery = queryOf(trashParams, (value) => ({
  limit: parseFields(trashChecker, value).limit ?? limitMax,
}))

export type ListParams = ReturnType<typeof listQuery.read>
export type ChildrenParams = ReturnType<typeof parseChildren>
export type SearchParams = ReturnType<typeof parseSearch>

export function parseChildren(value: unknown) {
  const fields = parseFields(childrenChecker, value)
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

export function parseSearch(value: unknown) {
  const fields = parseFields(searchChecker, value)
  const query = fields.query ?? fields.q ?? ''
  if (/\0/.test(query) || !query.isWellFormed()) {
    throw refused('query', '"query" must be plain text.')
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

/** The query parameters of a body's fields: `null` and an empty text stand for no folder. */
function queryOf<T>({ properties }: TObject, parse: (value: unknown) => T) {
  const fields = Object.entries<TSchema>(properties).map(([name, field]) => {
    const { anyOf, description, default: fallback } = field
    return [name, Type.Optional<TSchema>({ ...anyOf[0], description, default: fallback })]
  })
  return {
    schema: Type.Object(Object.fromEntries(fields)),
    read(params: URLSearchParams): T {
      const { limit, folder_id: folderId, ...rest } = Object.fromEntries(params)
      return parse({
        ...rest,
        ...(limit === undefined ? {} : { limit: /^\d{1,9}$/.test(limit) ? Number(limit) : limit }),
        ...(folderId === undefined
          ? {}
          : { folder_id: folderId === '' || folderId === 'null' ? null : folderId }),
      })
    },
  }
}
