import { unixSeconds } from '#lib/unix-seconds.ts'
import type { Collection, FileCounts, Member } from '#retrieval/collections/collections.ts'
import { statusOf } from '#retrieval/collections/render.ts'
import type { FileBatch, StoreCounts, StoredFile, VectorStore } from './answer-schema.ts'

/** A collection as clients of vector stores see it. */
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
    status: store.counts.inProgress > 0 ? 'in_progress' : 'completed',
    expires_at: null,
    last_active_at: unixSeconds(store.updatedAt),
    metadata: { ...store.metadata },
  }
}

export function renderStoreFile(member: Member, store: Collection): StoredFile {
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
    created_at: secondsOf(batchId),
    vector_store_id: store.id,
    status: counts.inProgress > 0 ? 'in_progress' : 'completed',
    file_counts: renderCounts(counts),
  }
}

function renderCounts({ total, completed, inProgress, failed }: FileCounts): StoreCounts {
  return { in_progress: inProgress, completed, failed, cancelled: 0, total }
}

/** The protocol knows three reasons; what is wrong is in the message. */
function renderError({ state, error }: Member): StoredFile['last_error'] {
  if (statusOf(state) !== 'failed') return null
  const message = error?.message ?? ''
  if (state === 'skipped') return { code: 'unsupported_file', message }
  const isOurs = /^(upstream|model|internal|service|server|worker|rate|insufficient)/.test(
    error?.code ?? '',
  )
  return { code: isOurs ? 'server_error' : 'invalid_file', message }
}

/** A UUID of version 7 begins with its time, in milliseconds. */
function secondsOf(id: string): number {
  return Math.floor(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16) / 1_000)
}
