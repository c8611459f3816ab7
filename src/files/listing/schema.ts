import { type Static, type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { id, oneOf, optional, parseFields, retrievalStatus, strict } from '#files/schema.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused } from '#lib/unprocessable.ts'

const limitDefault = 20
const limitMax = 100
/** OpenAI's clients may request this many files; they get `limitMax` and paginate. */
const listLimitMax = 10_000
const queryCharsMax = 1_000
const labelCharsMax = 256
const cursorCharsMax = 2_000

/** Absent and null stand for the default. */
const withDefault = <T extends TSchema>(schema: T, value: Static<T>, description?: string) =>
  Type.Optional(
    Type.Unsafe<Static<T>>(
      Type.Union([schema, Type.Null()], {
        default: value,
        ...(description === undefined ? {} : { description }),
      }),
    ),
  )
const limit = (maximum: number, value = limitDefault) =>
  withDefault(Type.Integer({ minimum: 1, maximum }), value, 'Items per page.')
const scope = () =>
  withDefault(
    oneOf('mine', 'shared_with_me', 'all'),
    'all',
    "The caller's own, those shared with the caller, or both.",
  )
const order = (value: 'asc' | 'desc') => withDefault(oneOf('asc', 'desc'), value)
const label = () =>
  Type.String({ minLength: 1, maxLength: labelCharsMax, pattern: '^[^\\u0000]*$' })
const cursor = () =>
  optional(Type.String({ maxLength: cursorCharsMax }), {
    description: '`next` of the previous page, with the same `sort` and `order`.',
  })

export const fileListParams = paramsOf(
  {
    after: optional(id(), { description: 'The last file of the previous page.' }),
    before: optional(id(), { description: 'The first file of the next page.' }),
    limit: withDefault(
      Type.Integer({ minimum: 1, maximum: listLimitMax }),
      limitDefault,
      `Files per page; at most ${limitMax} are returned.`,
    ),
    order: order('desc'),
    scope: scope(),
    purpose: optional(label(), { description: 'Only files that were uploaded for this purpose.' }),
  },
  (params) => {
    if (params.after && params.before) {
      throw refused('before', '"before" cannot be combined with "after".')
    }
    return { ...params, limit: Math.min(params.limit, limitMax) }
  },
)
export const childrenParams = paramsOf(
  {
    folder_id: optional(id(), { description: 'Absent or null: the top level.' }),
    scope: scope(),
    type: withDefault(oneOf('all', 'file', 'folder'), 'all'),
    sort: withDefault(
      oneOf('name', 'created_at', 'updated_at', 'bytes'),
      'name',
      'Folders always come first.',
    ),
    order: order('asc'),
    limit: limit(limitMax),
    cursor: cursor(),
  },
  (params) => params,
)
export const searchParams = paramsOf(
  {
    q: optional(Type.String({ maxLength: queryCharsMax }), {
      description: 'The terms that the name contains, in any case.',
    }),
    query: optional(Type.String({ maxLength: queryCharsMax }), {
      description: 'The same as `q`; takes precedence.',
    }),
    folder_id: optional(id(), { description: 'Searches all levels below this folder.' }),
    scope: scope(),
    mime_type: optional(label(), { description: '`text/plain`, or a whole type: `image/*`.' }),
    retrieval_status: optional(retrievalStatus),
    limit: limit(limitMax),
    cursor: cursor(),
  },
  ({ q, ...params }) => {
    const query = params.query ?? q ?? ''
    if (/\0/.test(query) || !query.isWellFormed()) {
      throw refused('query', '"query" must be plain text.')
    }
    return { ...params, query }
  },
)
export const trashParams = paramsOf({ limit: limit(limitMax, limitMax) }, (params) => params)

export type FileListParams = ReturnType<typeof fileListParams.parse>
export type ChildrenParams = ReturnType<typeof childrenParams.parse>
export type SearchParams = ReturnType<typeof searchParams.parse>

/** Parameters as a body or a query. Absent and null fields take their default, or null. */
function paramsOf<T extends TProperties, Params>(
  properties: T,
  validate: (params: Required<Static<TObject<T>>>) => Params,
) {
  const schema = strict(properties)
  const checker = compileChecker(schema)
  const parse = (value: unknown): Params => {
    const fields = Object(parseFields(checker, value))
    const params = Object.entries(schema.properties).map(([name, { default: fallback = null }]) => [
      name,
      fields[name] ?? fallback,
    ])
    return validate(Object.fromEntries(params))
  }
  return { schema, parse, query: queryOf(properties, parse) }
}

/** The query parameters of a body's fields: `null` and an empty text stand for no folder. */
function queryOf<T>(properties: TProperties, parse: (value: unknown) => T) {
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
