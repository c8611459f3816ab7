import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { parseAttributes } from '#files/attributes.ts'
import { asRecord } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused } from '#lib/unprocessable.ts'
import type { Chunking, MemberState, NewMember } from '#retrieval/collections/collections.ts'
import {
  attributesGiven,
  checkOverlap,
  chunkOverlapTokens,
  chunkTokensMax,
  orderedPageQuery,
} from '#retrieval/collections/schema.ts'
import { readBody } from '#retrieval/read-body.ts'
import { queryText, readQuery, resultsMax } from '#retrieval/search/schema.ts'
import type { SearchRequest } from '#retrieval/search/search.ts'
import { readStoreFilters } from './filters.ts'

/** The wire shapes of `/v1/vector_stores`; fields that are not known are left alone. */

const nameCharsMax = 256
const descriptionCharsMax = 1_000
const metadataMax = { pairs: 16, keyChars: 64, valueChars: 512 }
const filesAtOnceMax = 500
/** What clients of vector stores expect where they do not say. */
const resultsDefault = 10

const fileIds = Type.Array(Type.String(), { maxItems: filesAtOnceMax })
const chunkingStrategy = Type.Union([
  Type.Object({ type: Type.Literal('auto') }),
  Type.Object({
    type: Type.Literal('static'),
    static: Type.Object({
      max_chunk_size_tokens: chunkTokensMax,
      chunk_overlap_tokens: chunkOverlapTokens,
    }),
  }),
])
const storeFields = {
  name: Type.Optional(Type.String({ minLength: 1, maxLength: nameCharsMax })),
  description: Type.Optional(Type.String({ maxLength: descriptionCharsMax })),
  metadata: Type.Optional(
    Type.Unknown({
      description: `Up to ${metadataMax.pairs} texts that are kept with it; null takes them away.`,
      type: 'object',
      additionalProperties: { type: 'string', maxLength: metadataMax.valueChars },
    }),
  ),
  expires_after: Type.Optional(
    Type.Unknown({ description: 'Refused unless it is null: a store does not expire.' }),
  ),
}

export const newStoreBody = Type.Object({
  ...storeFields,
  file_ids: Type.Optional(fileIds),
  chunking_strategy: Type.Optional(chunkingStrategy),
})
export const storeChangeBody = Type.Object(storeFields)
const memberFields = {
  attributes: Type.Optional(attributesGiven),
  chunking_strategy: Type.Optional(chunkingStrategy),
}
export const storeMemberBody = Type.Object({ file_id: Type.String(), ...memberFields })
export const batchBody = Type.Object({
  file_ids: Type.Optional(fileIds),
  files: Type.Optional(Type.Array(storeMemberBody, { maxItems: filesAtOnceMax })),
  ...memberFields,
})
export const ownAttributesBody = Type.Object({ attributes: Type.Optional(attributesGiven) })
/** Of one search: each is asked by itself. */
const queriesMax = 10
export const storeSearchBody = Type.Object({
  query: Type.Unknown({
    description: `A text, or up to ${queriesMax} that are asked together.`,
    anyOf: [queryText, { type: 'array', items: queryText, minItems: 1, maxItems: queriesMax }],
  }),
  filters: Type.Optional(
    Type.Unknown({
      description:
        'A comparison `{type: "eq" | "in", key, value}`, or `{type: "and" | "or", filters}` of them; `or` chooses between values of one key.',
      type: 'object',
    }),
  ),
  max_num_results: Type.Optional(
    Type.Integer({ minimum: 1, maximum: resultsMax, default: resultsDefault }),
  ),
  ranking_options: Type.Optional(
    Type.Object({
      ranker: Type.Optional(Type.String({ description: '`none`: without the reranker.' })),
      score_threshold: Type.Optional(Type.Number()),
    }),
  ),
})

export const storeFilesQuery = Type.Object({
  ...orderedPageQuery.properties,
  filter: Type.Optional(
    Type.Union(
      ['in_progress', 'completed', 'failed', 'cancelled'].map((state) => Type.Literal(state)),
      { description: 'Only files of this status.' },
    ),
  ),
})

const createChecker = compileChecker(newStoreBody)
const updateChecker = compileChecker(storeChangeBody)
const memberChecker = compileChecker(storeMemberBody)
const batchChecker = compileChecker(batchBody)
const attributesChecker = compileChecker(ownAttributesBody)
const searchChecker = compileChecker(storeSearchBody)

type Strategy = Static<typeof chunkingStrategy>

/** These read what is sent; what is wrong with it throws an `AppError` of status 422. */

export function readNewStore(body: unknown) {
  const fields = readBody(createChecker, body)
  refuseExpiry(fields.expires_after)
  return {
    title: fields.name ?? null,
    description: fields.description ?? null,
    metadata: readMetadata(fields.metadata),
    fileIds: fields.file_ids ?? [],
    chunking: chunkingOf(fields.chunking_strategy),
  }
}

export function readStoreChange(body: unknown) {
  const fields = readBody(updateChecker, body)
  refuseExpiry(fields.expires_after)
  const isCleared = asRecord(body)['metadata'] === null
  return {
    ...(fields.name === undefined ? {} : { title: fields.name }),
    ...(fields.description === undefined ? {} : { description: fields.description }),
    ...(fields.metadata === undefined ? {} : { metadata: readMetadata(fields.metadata) }),
    ...(isCleared ? { metadata: {} } : {}),
  }
}

/** `chunking`: of the store, which is that of all of its files. */
export function readStoreMember(body: unknown, chunking: Chunking): NewMember {
  return memberOf(readBody(memberChecker, body), chunking)
}

export function readBatch(body: unknown, chunking: Chunking): readonly NewMember[] {
  const { files = [], file_ids: ids = [], ...common } = readBody(batchChecker, body)
  const members = [...files, ...ids.map((fileId) => ({ file_id: fileId, ...common }))]
  if (members.length === 0) throw refused('file_ids', '"file_ids" must name files.')
  return members.map((member) => memberOf(member, chunking))
}

export function readOwnAttributes(body: unknown) {
  const { attributes } = readBody(attributesChecker, body)
  return parseAttributes(attributes ?? {})
}

export function readStoreSearch(body: unknown, store: string): SearchRequest {
  const fields = readBody(searchChecker, body)
  const { ranker, score_threshold: scoreMin } = fields.ranking_options ?? {}
  return {
    collections: [store],
    queries: readQueries(fields.query),
    filters: readStoreFilters(fields.filters),
    topK: fields.max_num_results ?? resultsDefault,
    scoreMin: scoreMin ?? null,
    mode: 'hybrid',
    rerank: ranker === 'none' ? false : null,
  }
}

const statesOf: Readonly<Record<string, readonly MemberState[]>> = {
  in_progress: ['pending'],
  completed: ['done'],
  failed: ['failed', 'skipped'],
  cancelled: [],
}

export function readStates(filter: string | undefined): readonly MemberState[] | null {
  if (filter === undefined) return null
  const states = statesOf[filter]
  if (states !== undefined) return states
  throw refused('filter', '"filter" must be in_progress, completed, failed or cancelled.')
}

function readQueries(query: unknown): readonly string[] {
  if (!Array.isArray(query)) return [readQuery(query)]
  if (query.length === 0 || query.length > queriesMax) {
    throw refused('query', `"query" must be a text, or a list of 1 to ${queriesMax} texts.`)
  }
  return query.map((text, index) => readQuery(text, `query[${index}]`))
}

type MemberFields = { file_id: string; attributes?: unknown; chunking_strategy?: Strategy }

function memberOf(fields: MemberFields, chunking: Chunking): NewMember {
  const wanted = chunkingOf(fields.chunking_strategy)
  const isSame =
    wanted === null ||
    (wanted.tokensMax === chunking.tokensMax && wanted.overlapTokens === chunking.overlapTokens)
  if (!isSame) {
    const sentence = 'All files of a vector store are split in the one way that the store has.'
    throw refused('chunking_strategy', sentence)
  }
  const attributes = fields.attributes ?? null
  return {
    fileId: fields.file_id,
    attributes: attributes === null ? null : parseAttributes(attributes),
  }
}

function chunkingOf(strategy: Strategy | undefined): Chunking | null {
  if (strategy?.type !== 'static') return null
  const { max_chunk_size_tokens: tokensMax, chunk_overlap_tokens: overlapTokens } = strategy.static
  const path = 'chunking_strategy.static'
  return checkOverlap({ tokensMax, overlapTokens }, [
    `${path}.max_chunk_size_tokens`,
    `${path}.chunk_overlap_tokens`,
  ])
}

function refuseExpiry(expiry: unknown): void {
  if (expiry === undefined) return
  throw refused('expires_after', 'A vector store does not expire; delete it when it is not needed.')
}

const metadataChecker = compileChecker(
  Type.Record(
    Type.String({ maxLength: metadataMax.keyChars }),
    Type.String({ maxLength: metadataMax.valueChars }),
    { maxProperties: metadataMax.pairs },
  ) as TSchema,
)

function readMetadata(metadata: unknown): Readonly<Record<string, string>> {
  if (metadata === undefined) return {}
  const isFit =
    metadataChecker.check(metadata) &&
    Object.keys(asRecord(metadata)).every((key) => key.length <= metadataMax.keyChars)
  if (isFit)
    return Object.fromEntries(
      Object.entries(asRecord(metadata)).map(([key, value]) => [key, String(value)]),
    )
  const { pairs, keyChars, valueChars } = metadataMax
  throw refused(
    'metadata',
    `"metadata" must be an object of at most ${pairs} texts of ${valueChars} characters, with keys of ${keyChars}.`,
  )
}
