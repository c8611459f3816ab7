import { Type } from '@sinclair/typebox'
import { isUuid } from '#auth/schema.ts'
import { readAttributes } from '#files/attributes.ts'
import { asRecord } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused } from '#lib/unprocessable.ts'
import { readBody } from '#retrieval/read-body.ts'
import type {
  Chunking,
  CollectionChange,
  NewCollection,
  NewMember,
  PageRequest,
} from './collections.ts'

/** The wire shapes of `/v1/collections`. */

const descriptionCharsMax = 1_000
const modelCharsMax = 256
const pageSize = { default: 20, max: 100 }
const nameForm = /^[a-z0-9][a-z0-9_-]{0,62}$/
/** What a splitter can keep apart, and a model can read. */
const chunkTokens = { min: 100, max: 4_096 }

const accessMode = Type.Union([Type.Literal('files'), Type.Literal('collection')])
const description = Type.String({ maxLength: descriptionCharsMax })
const text = (maxLength: number) => Type.String({ minLength: 1, maxLength })
const strict = { additionalProperties: false }

const createBody = Type.Object(
  {
    name: Type.String(),
    description: Type.Optional(description),
    access_mode: Type.Optional(accessMode),
    chunking: Type.Optional(
      Type.Object({ max_tokens: Type.Integer(), overlap_tokens: Type.Integer() }, strict),
    ),
    embedding_model: Type.Optional(text(modelCharsMax)),
    folder_id: Type.Optional(Type.String()),
  },
  strict,
)

const changeBody = Type.Object(
  {
    name: Type.Optional(Type.String()),
    description: Type.Optional(description),
    access_mode: Type.Optional(accessMode),
    folder_id: Type.Optional(Type.String()),
  },
  strict,
)

const addBody = Type.Object(
  { file_id: Type.String(), attributes: Type.Optional(Type.Unknown()) },
  strict,
)

const createChecker = compileChecker(createBody)
const changeChecker = compileChecker(changeBody)
const addChecker = compileChecker(addBody)
const attributesChecker = compileChecker(
  Type.Object({ attributes: Type.Optional(Type.Unknown()) }, strict),
)

/** These read what is sent; what is wrong with it throws an `AppError` of status 422. */

export function readNewCollection(body: unknown): NewCollection {
  const fields = readBody(createChecker, body)
  const { chunking } = fields
  return {
    name: readName(fields.name),
    title: null,
    description: fields.description ?? null,
    metadata: {},
    accessMode: fields.access_mode ?? 'files',
    chunking:
      chunking === undefined
        ? null
        : checkChunking(
            { tokensMax: chunking.max_tokens, overlapTokens: chunking.overlap_tokens },
            ['chunking.max_tokens', 'chunking.overlap_tokens'],
          ),
    embeddingModel: fields.embedding_model ?? null,
    folderId: fields.folder_id === undefined ? null : readFolder(fields.folder_id),
  }
}

/** A description or folder that is null is taken away. */
export function readCollectionChange(body: unknown): CollectionChange {
  const {
    name,
    description: words,
    access_mode: mode,
    folder_id: folder,
  } = readBody(changeChecker, body)
  const isNull = (field: string) => asRecord(body)[field] === null
  return {
    ...(name === undefined ? {} : { name: readName(name) }),
    ...(words === undefined ? {} : { description: words }),
    ...(isNull('description') ? { description: null } : {}),
    ...(mode === undefined ? {} : { accessMode: mode }),
    ...(folder === undefined ? {} : { folderId: readFolder(folder) }),
    ...(isNull('folder_id') ? { folderId: null } : {}),
  }
}

export function readNewMember(body: unknown): NewMember {
  const { file_id: fileId, attributes } = readBody(addChecker, body)
  return { fileId, attributes: attributes === undefined ? null : readAttributes(attributes) }
}

/** The change of attributes; null takes all of them away. */
export function readAttributesChange(body: unknown): unknown {
  readBody(attributesChecker, body)
  const { attributes } = asRecord(body)
  if (attributes === undefined) throw refused('attributes', '"attributes" is required.')
  return attributes
}

export function readPage(query: Readonly<Record<string, string | undefined>>): PageRequest {
  const { limit = String(pageSize.default), order = 'desc', after, before } = query
  if (!/^\d{1,3}$/.test(limit) || Number(limit) < 1 || Number(limit) > pageSize.max) {
    throw refused('limit', `"limit" must be a whole number from 1 to ${pageSize.max}.`)
  }
  if (order !== 'asc' && order !== 'desc') throw refused('order', '"order" must be asc or desc.')
  if (after !== undefined && before !== undefined) {
    throw refused('before', '"before" does not go with "after".')
  }
  return {
    limit: Number(limit),
    order,
    after: readCursor(after, 'after'),
    before: readCursor(before, 'before'),
  }
}

export function isForced(query: Readonly<Record<string, string | undefined>>): boolean {
  const { force = 'false' } = query
  if (force === 'true' || force === 'false') return force === 'true'
  throw refused('force', '"force" must be true or false.')
}

export function isCollectionName(name: string): boolean {
  // What looks like an id is read as one.
  return nameForm.test(name) && !isUuid(name)
}

/** `params`: how the two are named where they were sent. */
export function checkChunking(
  chunking: Chunking,
  [ofTokens, ofOverlap]: readonly [string, string],
): Chunking {
  const { tokensMax, overlapTokens } = chunking
  if (tokensMax < chunkTokens.min || tokensMax > chunkTokens.max) {
    const { min, max } = chunkTokens
    throw refused(ofTokens, `"${ofTokens}" must be a whole number from ${min} to ${max}.`)
  }
  if (overlapTokens < 0 || overlapTokens > tokensMax / 2) {
    throw refused(ofOverlap, `"${ofOverlap}" must be from 0 to half of "${ofTokens}".`)
  }
  return chunking
}

function readName(name: string): string {
  if (isCollectionName(name)) return name
  throw refused(
    'name',
    '"name" must be 1 to 63 small letters, digits, "_" or "-", beginning with a letter or digit, and no UUID.',
    'invalid_name',
  )
}

function readFolder(folderId: string): string {
  if (isUuid(folderId)) return folderId
  throw refused('folder_id', '"folder_id" must be the id of a folder.')
}

function readCursor(cursor: string | undefined, param: string): string | null {
  if (cursor === undefined) return null
  if (isUuid(cursor)) return cursor
  throw refused(param, `"${param}" must be the id of an item of the list.`)
}
