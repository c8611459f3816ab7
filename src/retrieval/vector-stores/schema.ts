import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { parseAttributes } from '#files/attributes.ts'
import { asRecord } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused } from '#lib/unprocessable.ts'
import type { Chunking, MemberState, NewMember } from '#retrieval/collections/collections.ts'
import {
  attributesInput,
  chunkOverlapTokens,
  chunkTokensMax,
  orderedPageQuery,
  requireSmallOverlap,
} from '#retrieval/collections/schema.ts'
import { readBody } from '#retrieval/read-body.ts'
import { queryText, readQueryText, resultsMax } from '#retrieval/search/schema.ts'
import type { SearchRequest } from '#retrieval/search/search.ts'
import { readStoreFilters } from './filters.ts'

/**
 * What `/v1/vector_stores` accepts; unknown fields are ignored. The readers throw an `AppError` of
 * status 422, which `withModelErrors` turns into 400.
 */

const metadataMax = { pairs: 16, keyChars: 64, valueChars: 512 }
const filesPerRequestMax = 500
const expiryDaysMax = 365
/** Clients of vector stores expect this default. */
const resultsDefault = 10
const queriesMax = 10

const fileIds = Type.Array(Type.String(), { maxItems: filesPerRequestMax })
const chunkingStrategy = Type.Union([
  Type.Object({ type: Type.Literal('auto') }, { $id: 'AutoChunking' }),
  Type.Object(
    {
      type: Type.Literal('static'),
      static: Type.Object({
        max_chunk_size_tokens: chunkTokensMax,
        chunk_overlap_tokens: chunkOverlapTokens,
      }),
    },
    { $id: 'StaticChunking' },
  ),
])
const storeFields = {
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  description: Type.Optional(Type.String({ maxLength: 1_000 })),
  metadata: Type.Optional(
    Type.Unknown({
      description: `Up to ${metadataMax.pairs} strings stored with it; null removes them.`,
      type: 'object',
      additionalProperties: { type: 'string', maxLength: metadataMax.valueChars },
    }),
  ),
  expires_after: Type.Optional(
    Type.Object(
      {
        anchor: Type.Literal('last_active_at'),
        days: Type.Integer({ minimum: 1, maximum: expiryDaysMax }),
      },
      {
        description: 'It expires after these days without a search or an added file; null: never.',
      },
    ),
  ),
}

export const newStoreBody = Type.Object({
  ...storeFields,
  file_ids: Type.Optional(fileIds),
  chunking_strategy: Type.Optional(chunkingStrategy),
})
export const storeChangeBody = Type.Object(storeFields)
const memberFields = {
  attributes: Type.Optional(attributesInput),
  chunking_strategy: Type.Optional(chunkingStrategy),
}
export const storeMemberBody = Type.Object({ file_id: Type.String(), ...memberFields })
export const batchBody = Type.Object({
  file_ids: Type.Optional(fileIds),
  files: Type.Optional(Type.Array(storeMemberBody, { maxItems: filesPerRequestMax })),
  ...memberFields,
})
export const fileAttributesBody = Type.Object({ attributes: Type.Optional(attributesInput) })
export const storeSearchBody = Type.Object({
  query: Type.Unknown({
    description: `A text, or up to ${queriesMax} texts whose results are merged.`,
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

const memberStates: Readonly<Record<string, readonly MemberState[]>> = {
  in_progress: ['pending'],
  completed: ['done'],
  failed: ['failed', 'skipped'],
  cancelled: [],
}

export const storeFilesQuery = Type.Object({
  ...orderedPageQuery.properties,
  filter: Type.Optional(
    Type.Union(
      Object.keys(memberStates).map((state) => Type.Literal(state)),
      { description: 'Only files of this status.' },
    ),
  ),
})

/** The states of members with this status; null: all. */
export function statesOf(status: string | undefined): readonly MemberState[] | null {
  return status === undefined ? null : (memberStates[status] ?? [])
}

export type NewStore = ReturnType<typeof readNewStore>

export function readNewStore(body: unknown = {}) {
  const fields = readBody(newStoreBody, body)
  return {
    title: fields.name ?? null,
    description: fields.description ?? null,
    metadata: readMetadata(fields.metadata),
    expiresAfterDays: fields.expires_after?.days ?? null,
    fileIds: fields.file_ids ?? [],
    chunking: chunkingOf(fields.chunking_strategy),
  }
}

export function readStoreChange(body: unknown) {
  const fields = readBody(storeChangeBody, body)
  const isNull = (field: string) => asRecord(body)[field] === null
  const { expires_after: expiry } = fields
  return {
    ...(fields.name === undefined ? {} : { title: fields.name }),
    ...(fields.description === undefined ? {} : { description: fields.description }),
    ...(fields.metadata === undefined ? {} : { metadata: readMetadata(fields.metadata) }),
    ...(isNull('metadata') ? { metadata: {} } : {}),
    ...(expiry === undefined ? {} : { expiresAfterDays: expiry.days }),
    ...(isNull('expires_after') ? { expiresAfterDays: null } : {}),
  }
}

/** A member and the chunking that the request expects; null: none. */
export type StoreMember = NewMember & { readonly chunking: Chunking | null }

export function readStoreMember(body: unknown): StoreMember {
  return memberOf(readBody(storeMemberBody, body))
}

export function readBatch(body: unknown): readonly StoreMember[] {
  const { files = [], file_ids: ids = [], ...common } = readBody(batchBody, body)
  const members = [...files, ...ids.map((fileId) => ({ file_id: fileId, ...common }))]
  if (members.length === 0) throw refused('file_ids', '"file_ids" must name files.')
  return members.map(memberOf)
}

/** All files of a store are split in the same way. */
export function requireChunking(members: readonly StoreMember[], chunking: Chunking): void {
  const isOther = members.some(
    ({ chunking: wanted }) =>
      wanted !== null &&
      (wanted.tokensMax !== chunking.tokensMax || wanted.overlapTokens !== chunking.overlapTokens),
  )
  if (!isOther) return
  throw refused('chunking_strategy', 'All files of a vector store have the chunking of the store.')
}

export function readFileAttributes(body: unknown) {
  const { attributes } = readBody(fileAttributesBody, body)
  return parseAttributes(attributes ?? {})
}

export function readStoreSearch(body: unknown): Omit<SearchRequest, 'collections'> {
  const fields = readBody(storeSearchBody, body)
  const { ranker, score_threshold: scoreMin } = fields.ranking_options ?? {}
  return {
    queries: readQueryTexts(fields.query),
    filters: readStoreFilters(fields.filters),
    topK: fields.max_num_results ?? resultsDefault,
    scoreMin: scoreMin ?? null,
    mode: 'hybrid',
    rerank: ranker === 'none' ? false : null,
  }
}

function readQueryTexts(query: unknown): readonly string[] {
  if (!Array.isArray(query)) return [readQueryText(query)]
  if (query.length === 0 || query.length > queriesMax) {
    throw refused('query', `"query" must be a text, or a list of 1 to ${queriesMax} texts.`)
  }
  return query.map((text, index) => readQueryText(text, `query[${index}]`))
}

type Strategy = Static<typeof chunkingStrategy>
type MemberFields = { file_id: string; attributes?: unknown; chunking_strategy?: Strategy }

function memberOf(fields: MemberFields): StoreMember {
  const attributes = fields.attributes ?? null
  return {
    fileId: fields.file_id,
    attributes: attributes === null ? null : parseAttributes(attributes),
    chunking: chunkingOf(fields.chunking_strategy),
  }
}

function chunkingOf(strategy: Strategy | undefined): Chunking | null {
  if (strategy?.type !== 'static') return null
  const { max_chunk_size_tokens: tokensMax, chunk_overlap_tokens: overlapTokens } = strategy.static
  const path = 'chunking_strategy.static'
  return requireSmallOverlap({ tokensMax, overlapTokens }, [
    `${path}.max_chunk_size_tokens`,
    `${path}.chunk_overlap_tokens`,
  ])
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
  const { pairs, keyChars, valueChars } = metadataMax
  const entries = Object.entries(asRecord(metadata))
  if (metadataChecker.check(metadata) && entries.every(([key]) => key.length <= keyChars)) {
    return Object.fromEntries(entries.map(([key, value]) => [key, String(value)]))
  }
  throw refused(
    'metadata',
    `"metadata" must be an object of at most ${pairs} texts of ${valueChars} characters, with keys of ${keyChars}.`,
  )
}
