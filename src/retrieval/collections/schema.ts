import { type Static, Type } from '@sinclair/typebox'
import { pageQuery } from '#api/shapes.ts'
import { parseAttributes } from '#files/attributes.ts'
import { asRecord } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused } from '#lib/unprocessable.ts'
import { isUuid } from '#lib/uuid.ts'
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

export const accessMode = Type.Union([Type.Literal('files'), Type.Literal('collection')], {
  description:
    '`files`: whoever may read a file finds it. `collection`: whoever sees the collection finds all that is in it.',
})
const name = Type.String({
  description:
    '1 to 63 small letters, digits, `_` or `-`, beginning with a letter or digit; no UUID.',
})
const description = Type.String({ maxLength: descriptionCharsMax })
const folderId = Type.String({ description: 'A folder whose files are all in the collection.' })
const strict = { additionalProperties: false }

export const chunkTokensMax = Type.Integer({
  description: 'Tokens of a passage at most.',
  minimum: chunkTokens.min,
  maximum: chunkTokens.max,
})
export const chunkOverlapTokens = Type.Integer({
  description: 'Tokens that a passage has from the one before it, at most half of its own.',
  minimum: 0,
  maximum: chunkTokens.max / 2,
})
/** How files are split. */
export const chunkingShape = Type.Object(
  { max_tokens: chunkTokensMax, overlap_tokens: chunkOverlapTokens },
  strict,
)

export const newCollectionBody = Type.Object(
  {
    name,
    description: Type.Optional(description),
    access_mode: Type.Optional(accessMode),
    chunking: Type.Optional(chunkingShape),
    embedding_model: Type.Optional(
      Type.String({
        description: 'The name of a model of mode `embed`; as configured where it is absent.',
        minLength: 1,
        maxLength: modelCharsMax,
      }),
    ),
    folder_id: Type.Optional(folderId),
  },
  strict,
)

export const collectionChangeBody = Type.Object(
  {
    name: Type.Optional(name),
    description: Type.Optional(description),
    access_mode: Type.Optional(accessMode),
    folder_id: Type.Optional(folderId),
  },
  strict,
)

/** Read by hand, since what is wrong with one of them is told of it alone. */
export const attributesGiven = Type.Unknown({
  description:
    'Up to 16 texts of 512 characters, numbers or booleans, with keys of 1 to 64 letters, digits, `_`, `.` or `-`.',
  type: 'object',
  additionalProperties: { type: ['string', 'number', 'boolean'] },
})

export const newMemberBody = Type.Object(
  { file_id: Type.String(), attributes: Type.Optional(attributesGiven) },
  strict,
)

export const attributesChangeBody = Type.Object(
  {
    attributes: Type.Unknown({
      description:
        'What is given takes the place of what is there; a value that is null is taken away, and null in place of the object takes all away.',
      type: ['object', 'null'],
      additionalProperties: { type: ['string', 'number', 'boolean', 'null'] },
    }),
  },
  strict,
)

/** The query of lists that can be read in both directions. */
export const orderedPageQuery = Type.Object({
  ...pageQuery.properties,
  before: Type.Optional(
    Type.String({
      description: 'The id of the first member of the page behind; not with `after`.',
    }),
  ),
  order: Type.Optional(
    Type.Union([Type.Literal('desc'), Type.Literal('asc')], {
      description: 'Newest first, or oldest first.',
      default: 'desc',
    }),
  ),
})

export const forceQuery = Type.Object({
  force: Type.Optional(
    Type.Boolean({ description: 'Even if agents search it by this name.', default: false }),
  ),
})

const createChecker = compileChecker(newCollectionBody)
const changeChecker = compileChecker(collectionChangeBody)
const addChecker = compileChecker(newMemberBody)
const attributesChecker = compileChecker(Type.Partial(attributesChangeBody, strict))

/** These read what is sent; what is wrong with it throws an `AppError` of status 422. */

export function readNewCollection(body: unknown): NewCollection {
  const fields = readBody(createChecker, body)
  return {
    name: readName(fields.name),
    title: null,
    description: fields.description ?? null,
    metadata: {},
    accessMode: fields.access_mode ?? 'files',
    chunking: readChunking(fields.chunking),
    embeddingModel: fields.embedding_model ?? null,
    folderId: fields.folder_id === undefined ? null : readFolder(fields.folder_id),
  }
}

/** A description or folder that is null is taken away. */
export function readCollectionChange(body: unknown): CollectionChange {
  const fields = readBody(changeChecker, body)
  const { access_mode: mode, folder_id: folder } = fields
  const isNull = (field: string) => asRecord(body)[field] === null
  return {
    ...(fields.name === undefined ? {} : { name: readName(fields.name) }),
    ...(fields.description === undefined ? {} : { description: fields.description }),
    ...(isNull('description') ? { description: null } : {}),
    ...(mode === undefined ? {} : { accessMode: mode }),
    ...(folder === undefined ? {} : { folderId: readFolder(folder) }),
    ...(isNull('folder_id') ? { folderId: null } : {}),
  }
}

export function readNewMember(body: unknown): NewMember {
  const { file_id: fileId, attributes } = readBody(addChecker, body)
  return { fileId, attributes: attributes === undefined ? null : parseAttributes(attributes) }
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

export function isCollectionName(word: string): boolean {
  // What looks like an id is read as one.
  return nameForm.test(word) && !isUuid(word)
}

/** Null where nothing is said about it. */
export function readChunking(given: Static<typeof chunkingShape> | undefined): Chunking | null {
  if (given === undefined) return null
  const chunking = { tokensMax: given.max_tokens, overlapTokens: given.overlap_tokens }
  return checkOverlap(chunking, ['chunking.max_tokens', 'chunking.overlap_tokens'])
}

/** The names: of the two where they were sent. */
export function checkOverlap(
  chunking: Chunking,
  [ofTokens, ofOverlap]: readonly [string, string],
): Chunking {
  if (chunking.overlapTokens <= chunking.tokensMax / 2) return chunking
  throw refused(ofOverlap, `"${ofOverlap}" must be from 0 to half of "${ofTokens}".`)
}

function readName(given: string): string {
  if (isCollectionName(given)) return given
  throw refused(
    'name',
    '"name" must be 1 to 63 small letters, digits, "_" or "-", beginning with a letter or digit, and no UUID.',
    'invalid_name',
  )
}

function readFolder(given: string): string {
  if (isUuid(given)) return given
  throw refused('folder_id', '"folder_id" must be the id of a folder.')
}

function readCursor(cursor: string | undefined, param: string): string | null {
  if (cursor === undefined) return null
  if (isUuid(cursor)) return cursor
  throw refused(param, `"${param}" must be the id of an item of the list.`)
}
