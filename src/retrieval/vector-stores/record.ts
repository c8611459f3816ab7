import { type Static, Type } from '@sinclair/typebox'
import { nullable, unixTime } from '#api/shapes.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import type { Collection, FileCounts, Member } from '#retrieval/collections/collections.ts'
import { fileAttributes, fileStatus, statusOf } from '#retrieval/collections/record.ts'

/** The JSON of vector stores; times are Unix seconds. */

const fileCounts = Type.Object({
  in_progress: Type.Integer(),
  completed: Type.Integer(),
  failed: Type.Integer(),
  cancelled: Type.Integer({ description: 'Always 0: processing cannot be cancelled.' }),
  total: Type.Integer(),
})

const batchStatus = Type.Union([Type.Literal('in_progress'), Type.Literal('completed')])
const storeStatus = Type.Union([...batchStatus.anyOf, Type.Literal('expired')])

export const vectorStore = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('vector_store'),
    created_at: unixTime('Time of creation.'),
    name: Type.String(),
    collection: Type.String({ description: 'The name of the collection.' }),
    description: nullable(Type.String(), 'What it is about.'),
    usage_bytes: Type.Integer(),
    file_counts: fileCounts,
    status: storeStatus,
    expires_after: nullable(
      Type.Object({ anchor: Type.Literal('last_active_at'), days: Type.Integer() }),
      'When it expires; null: never.',
    ),
    expires_at: nullable(Type.Integer(), 'Unix seconds.'),
    last_active_at: unixTime('Time of the last change, added file or search.'),
    metadata: Type.Record(Type.String(), Type.String()),
  },
  { $id: 'VectorStore' },
)
export type VectorStore = Static<typeof vectorStore>

export const storeFile = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'The id of the file.' }),
    object: Type.Literal('vector_store.file'),
    created_at: unixTime('Time of addition to the store.'),
    vector_store_id: Type.String(),
    status: fileStatus,
    usage_bytes: Type.Integer(),
    last_error: nullable(
      Type.Object({
        code: Type.Union([
          Type.Literal('unsupported_file'),
          Type.Literal('server_error'),
          Type.Literal('invalid_file'),
        ]),
        message: Type.String(),
      }),
      'Why the file cannot be searched.',
    ),
    attributes: fileAttributes,
    chunking_strategy: Type.Object({
      type: Type.Literal('static'),
      static: Type.Object({
        max_chunk_size_tokens: Type.Integer(),
        chunk_overlap_tokens: Type.Integer(),
      }),
    }),
  },
  { $id: 'VectorStoreFile' },
)
export type StoreFile = Static<typeof storeFile>

export const fileBatch = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('vector_store.files_batch'),
    created_at: unixTime('Time of creation.'),
    vector_store_id: Type.String(),
    status: batchStatus,
    file_counts: fileCounts,
  },
  { $id: 'VectorStoreFileBatch' },
)
export type FileBatch = Static<typeof fileBatch>

export function renderStore(store: Collection): VectorStore {
  return {
    id: store.id,
    object: 'vector_store',
    created_at: unixSeconds(store.createdAt),
    name: store.title ?? store.name,
    collection: store.name,
    description: store.description,
    usage_bytes: store.bytes,
    file_counts: renderCounts(store.counts),
    status: store.isExpired ? 'expired' : store.counts.inProgress > 0 ? 'in_progress' : 'completed',
    expires_after:
      store.expiresAfterDays === null
        ? null
        : { anchor: 'last_active_at', days: store.expiresAfterDays },
    expires_at: store.expiresAt === null ? null : unixSeconds(store.expiresAt),
    last_active_at: unixSeconds(store.lastActiveAt),
    metadata: { ...store.metadata },
  }
}

export function renderStoreFile(member: Member, store: Collection): StoreFile {
  const { tokensMax, overlapTokens } = store.chunking
  return {
    id: member.fileId,
    object: 'vector_store.file',
    created_at: unixSeconds(member.addedAt),
    vector_store_id: store.id,
    status: statusOf(member.state),
    usage_bytes: member.bytes,
    last_error: renderError(member),
    attributes: member.attributes,
    chunking_strategy: {
      type: 'static',
      static: { max_chunk_size_tokens: tokensMax, chunk_overlap_tokens: overlapTokens },
    },
  }
}

export function renderBatch(batchId: string, store: Collection, counts: FileCounts): FileBatch {
  return {
    id: batchId,
    object: 'vector_store.files_batch',
    created_at: secondsOfUuid(batchId),
    vector_store_id: store.id,
    status: counts.inProgress > 0 ? 'in_progress' : 'completed',
    file_counts: renderCounts(counts),
  }
}

function renderCounts({ total, completed, inProgress, failed }: FileCounts) {
  return { in_progress: inProgress, completed, failed, cancelled: 0, total }
}

/** The protocol has three codes; the message says more. */
function renderError({ state, error }: Member): StoreFile['last_error'] {
  if (statusOf(state) !== 'failed') return null
  const message = error?.message ?? ''
  if (state === 'skipped') return { code: 'unsupported_file', message }
  const isServerError = /^(upstream|model|internal|service|server|worker|rate|insufficient)/.test(
    error?.code ?? '',
  )
  return { code: isServerError ? 'server_error' : 'invalid_file', message }
}

/** A UUIDv7 begins with its time in milliseconds. */
function secondsOfUuid(id: string): number {
  return Math.floor(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16) / 1_000)
}
