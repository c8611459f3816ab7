import { type Static, Type } from '@sinclair/typebox'
import { instant, nullable } from '#api/shapes.ts'
import { chunkingShape } from '#retrieval/collections/schema.ts'
import { reindexStatus } from './schema.ts'

/** What `/v1/embeddings/reindex` answers. */

const place = Type.Object({
  index_id: Type.String(),
  model: Type.String(),
  dims: Type.Integer({ description: 'How many numbers its vectors have.' }),
  chunking: chunkingShape,
})
export type ReindexPlace = Static<typeof place>

const time = (description: string) => nullable(Type.String({ format: 'date-time' }), description)

export const reindexRecord = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('embedding.reindex'),
    status: reindexStatus,
    source: place,
    target: place,
    collection_ids: Type.Array(Type.String()),
    completed: Type.Integer({ description: 'Files of the beginning that are in the target.' }),
    failed: Type.Integer(),
    skipped: Type.Integer({ description: 'Gone since, without a text, or left undone.' }),
    total: Type.Integer({ description: 'Files that were there at the beginning.' }),
    added: Type.Integer({ description: 'Files that came later, and went to the target at once.' }),
    rate_per_s: nullable(Type.Number(), 'Files over the last minute.'),
    eta_seconds: nullable(Type.Integer(), 'How long the rest takes at this rate.'),
    last_error: nullable(Type.String(), 'Why it does not go on, or what failed last.'),
    revertible_until: time('How long it can be reverted; null: it cannot.'),
    created_at: instant('When it was asked for'),
    started_at: time('When its files were gathered.'),
    finished_at: time('When it came to its end.'),
    started_by: Type.String({ description: 'The id of the user.' }),
  },
  { $id: 'Reindex' },
)
export type ReindexRecord = Static<typeof reindexRecord>

/** The answer to a dry run. */
export const reindexPlan = Type.Object(
  {
    total: Type.Integer({ description: 'Files.' }),
    est_tokens: Type.Integer(),
    est_seconds: Type.Integer(),
    dims: Type.Integer({ description: 'How many numbers the vectors of the model have.' }),
  },
  { $id: 'ReindexEstimate' },
)
export type ReindexPlan = Static<typeof reindexPlan>

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
