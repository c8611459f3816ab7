import { type Static, Type } from '@sinclair/typebox'
import { streamErrorBody } from '#api/error-shapes.ts'
import { idExample, instant, instantExample, nullable } from '#api/shapes.ts'
import { chunkingShape } from '#retrieval/collections/schema.ts'
import type { IndexSpec } from '#retrieval/index/chunk.ts'
import type { Reindex } from './progress.ts'
import { reindexStatus } from './schema.ts'

/** The JSON of reindexes. */

const reindexedIndex = Type.Object({
  index_id: Type.String(),
  model: Type.String(),
  dims: Type.Integer({ description: 'Dimensions of its vectors.' }),
  chunking: chunkingShape,
})

const time = (description: string) => nullable(Type.String({ format: 'date-time' }), description)

export const reindexRecord = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('embedding.reindex'),
    status: reindexStatus,
    source: reindexedIndex,
    target: reindexedIndex,
    collection_ids: Type.Array(Type.String()),
    completed: Type.Integer({ description: 'Files of the total that are in the target.' }),
    failed: Type.Integer(),
    skipped: Type.Integer({ description: 'Deleted, without text, or not processed.' }),
    total: Type.Integer({ description: 'Files at the start.' }),
    added: Type.Integer({ description: 'Files added later, which go to the target directly.' }),
    rate_per_s: nullable(Type.Number(), 'Files per second over the last minute.'),
    eta_seconds: nullable(Type.Integer(), 'Remaining time at this rate.'),
    last_error: nullable(Type.String(), 'Why it stopped, or the last failure.'),
    revertible_until: time('Until when it can be reverted; null: it cannot.'),
    created_at: instant('Time of the request'),
    started_at: time('Time at which its files were collected.'),
    finished_at: time('Time of its end.'),
    started_by: Type.String({ description: 'The id of the user.' }),
  },
  { $id: 'Reindex' },
)
type ReindexRecord = Static<typeof reindexRecord>

/** The response to a dry run. */
export const reindexEstimate = Type.Object(
  {
    total: Type.Integer({ description: 'Files.' }),
    est_tokens: Type.Integer(),
    est_seconds: Type.Integer(),
    dims: Type.Integer({ description: 'Dimensions of the vectors of the model.' }),
  },
  { $id: 'ReindexEstimate' },
)
export type ReindexEstimate = Static<typeof reindexEstimate>

export const reindexFailure = Type.Object(
  {
    file_id: Type.String({ format: 'uuid' }),
    filename: Type.String(),
    code: Type.String(),
    message: Type.String(),
    attempts: Type.Integer(),
  },
  { $id: 'ReindexFailure' },
)
export type ReindexFailure = Static<typeof reindexFailure>

export function renderReindex(reindex: Reindex): ReindexRecord {
  const isRevertible = reindex.status === 'completed'
  return {
    id: reindex.id,
    object: 'embedding.reindex',
    status: reindex.status,
    source: renderIndex(reindex.sourceIndexId, reindex.sourceSpec),
    target: renderIndex(reindex.targetIndexId, reindex.targetSpec),
    collection_ids: [...reindex.collectionIds],
    ...reindex.counters,
    rate_per_s: reindex.ratePerS,
    eta_seconds: reindex.etaSeconds,
    last_error: reindex.lastError,
    revertible_until: isRevertible ? (reindex.warmUntil?.toISOString() ?? null) : null,
    created_at: reindex.createdAt.toISOString(),
    started_at: reindex.startedAt?.toISOString() ?? null,
    finished_at: reindex.finishedAt?.toISOString() ?? null,
    started_by: reindex.startedBy,
  }
}

function renderIndex(indexId: number, spec: IndexSpec): Static<typeof reindexedIndex> {
  const { model, dims, chunkTokensMax, chunkOverlapTokens } = spec
  return {
    index_id: String(indexId),
    model,
    dims,
    chunking: { max_tokens: chunkTokensMax, overlap_tokens: chunkOverlapTokens },
  }
}

const chunkingExample = { max_tokens: 800, overlap_tokens: 100 }
export const reindexExample: ReindexRecord = {
  id: idExample,
  object: 'embedding.reindex',
  status: 'running',
  source: { index_id: '1', model: 'local-hash', dims: 384, chunking: chunkingExample },
  target: { index_id: '2', model: 'embed-large', dims: 1_024, chunking: chunkingExample },
  collection_ids: ['0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a63'],
  completed: 410,
  failed: 0,
  skipped: 2,
  total: 980,
  added: 3,
  rate_per_s: 6.5,
  eta_seconds: 88,
  last_error: null,
  revertible_until: null,
  created_at: instantExample,
  started_at: instantExample,
  finished_at: null,
  started_by: '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a62',
}
export const failureExample: ReindexFailure = {
  file_id: '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a61',
  filename: 'scan.pdf',
  code: 'upstream_unreachable',
  message: 'The upstream could not be reached.',
  attempts: 15,
}

export const progressExample = [
  'event: progress',
  `data: ${JSON.stringify(reindexExample)}`,
  '',
  'event: progress',
  `data: ${JSON.stringify({ ...reindexExample, status: 'completed', completed: 978, eta_seconds: null })}`,
  '',
  '',
].join('\n')

/** The data of the events `progress` and `error`. */
export const progressEvent = Type.Union([reindexRecord, streamErrorBody])
