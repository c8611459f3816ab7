import { type Static, Type } from '@sinclair/typebox'
import { pageQuery } from '#api/shapes.ts'
import { parseAttributes } from '#files/attributes.ts'
import { asRecord } from '#lib/json.ts'
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

/** What `/v1/collections` accepts. The readers throw an `AppError` of status 422. */

const namePattern = /^[a-z0-9][a-z0-9_-]{0,62}$/
/** Smaller passages carry no context; most embedding models truncate larger ones. */
const chunkTokens = { min: 100, max: 4_096 }
const strict = { additionalProperties: false }

export const accessMode = Type.Union([Type.Literal('files'), Type.Literal('collection')], {
  description:
    '`files`: a search finds the files that the caller may read. `collection`: it also finds passages of files added by a user who may share them.',
})
const name = Type.String({
  description:
    '1 to 63 small letters, digits, `_` or `-`, beginning with a letter or digit; no UUID.',
})
const description = Type.String({ maxLength: 1_000 })
const folderId = Type.String({ description: 'A folder whose files are members.' })

export const chunkTokensMax = Type.Integer({
  description: 'Tokens per passage at most.',
  minimum: chunkTokens.min,
  maximum: chunkTokens.max,
})
export const chunkOverlapTokens = Type.Integer({
  description: 'Tokens repeated from the previous passage, at most half of the maximum.',
  minimum: 0,
  maximum: chunkTokens.max / 2,
})
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
        description: 'The name of a model of mode `embed`; absent: the configured one.',
        minLength: 1,
        maxLength: 256,
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

/** Validated by `parseAttributes`, whose errors name the attribute. */
export const attributesInput = Type.Unknown({
  description:
    'Up to 16 strings of 512 characters, numbers or booleans, with keys of 1 to 64 letters, digits, `_`, `.` or `-`.',
  type: 'object',
  additionalProperties: { type: ['string', 'number', 'boolean'] },
})

export const newMemberBody = Type.Object(
  { file_id: Type.String(), attributes: Type.Optional(attributesInput) },
  strict,
)

export const attributesChangeBody = Type.Object(
  {
    attributes: Type.Unknown({
      description:
        'Replaces the given attributes. A value of null removes one; null in place of the object removes all.',
      type: ['object', 'null'],
      additionalProperties: { type: ['string', 'number', 'boolean', 'null'] },
    }),
  },
  strict,
)

/** The query of lists that can be paged in both directions. */
export const orderedPageQuery = Type.Object({
  ...pageQuery.properties,
  before: Type.Optional(
    Type.String({ format: 'uuid', description: 'The id of the first item of the following page.' }),
  ),
  order: Type.Union([Type.Literal('desc'), Type.Literal('asc')], {
    description: 'Newest or oldest first.',
    default: 'desc',
  }),
})

/** How a path names a collection. */
export const referenceHint =
  'The id of the collection, `owner/name` (with `%2F`), or its name: your own collection, or the only one of this name that is shared with you.'

export const ambiguousName = {
  code: 'ambiguous_name',
  message:
    'Several collections that you may see are named "handbooks": 0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a60 (ann/handbooks), 0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a61 (bob/handbooks). Send an id, or "owner/name".',
}

export const forceQuery = Type.Object({
  force: Type.Boolean({ description: 'Even if agents search it.', default: false }),
})

const partialAttributesChange = Type.Partial(attributesChangeBody, strict)

export function readNewCollection(body: unknown): NewCollection {
  const fields = readBody(newCollectionBody, body)
  return {
    name: readName(fields.name),
    title: null,
    description: fields.description ?? null,
    metadata: {},
    accessMode: fields.access_mode ?? 'files',
    chunking: readChunking(fields.chunking),
    embeddingModel: fields.embedding_model ?? null,
    folderId: fields.folder_id === undefined ? null : readFolderId(fields.folder_id),
  }
}

/** A description or folder of null is removed. */
export function readCollectionChange(body: unknown): CollectionChange {
  const fields = readBody(collectionChangeBody, body)
  const { access_mode: mode, folder_id: folder } = fields
  const isNull = (field: string) => asRecord(body)[field] === null
  return {
    ...(fields.name === undefined ? {} : { name: readName(fields.name) }),
    ...(fields.description === undefined ? {} : { description: fields.description }),
    ...(isNull('description') ? { description: null } : {}),
    ...(mode === undefined ? {} : { accessMode: mode }),
    ...(folder === undefined ? {} : { folderId: readFolderId(folder) }),
    ...(isNull('folder_id') ? { folderId: null } : {}),
  }
}

export function readNewMember(body: unknown): NewMember {
  const { file_id: fileId, attributes } = readBody(newMemberBody, body)
  return { fileId, attributes: attributes === undefined ? null : parseAttributes(attributes) }
}

/** The change of attributes, for `mergeAttributes`. */
export function readAttributesChange(body: unknown): unknown {
  readBody(partialAttributesChange, body)
  const { attributes } = asRecord(body)
  if (attributes === undefined) throw refused('attributes', '"attributes" is required.')
  return attributes
}

export function pageRequestOf(query: Static<typeof orderedPageQuery>): PageRequest {
  const { limit, order, after = null, before = null } = query
  if (after === null || before === null) return { limit, order, after, before }
  throw refused('before', '"before" cannot be combined with "after".')
}

/** A name never looks like an id, since both address a collection. */
export function isCollectionName(text: string): boolean {
  return namePattern.test(text) && !isUuid(text)
}

/** Null where it is absent. */
export function readChunking(fields: Static<typeof chunkingShape> | undefined): Chunking | null {
  if (fields === undefined) return null
  const chunking = { tokensMax: fields.max_tokens, overlapTokens: fields.overlap_tokens }
  return requireSmallOverlap(chunking, ['chunking.max_tokens', 'chunking.overlap_tokens'])
}

/** `paths` are the names of the two fields in the request. */
export function requireSmallOverlap(
  chunking: Chunking,
  [tokensPath, overlapPath]: readonly [string, string],
): Chunking {
  if (chunking.overlapTokens <= chunking.tokensMax / 2) return chunking
  throw refused(overlapPath, `"${overlapPath}" must be from 0 to half of "${tokensPath}".`)
}

function readName(text: string): string {
  if (isCollectionName(text)) return text
  throw refused(
    'name',
    '"name" must be 1 to 63 small letters, digits, "_" or "-", beginning with a letter or digit, and no UUID.',
    'invalid_name',
  )
}

function readFolderId(text: string): string {
  if (isUuid(text)) return text
  throw refused('folder_id', '"folder_id" must be the id of a folder.')
}
