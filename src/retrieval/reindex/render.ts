import type { ReindexFailure, ReindexPlace, ReindexPlan, ReindexRecord } from './answer-schema.ts'
import type { FailedFile, Reindex, ReindexEstimate, ReindexedIndex } from './reindex.ts'

export function renderReindex(reindex: Reindex): ReindexRecord {
  const { counters } = reindex
  return {
    id: reindex.id,
    object: 'embedding.reindex',
    status: reindex.status,
    source: renderIndex(reindex.source),
    target: renderIndex(reindex.target),
    collection_ids: [...reindex.collectionIds],
    completed: counters.completed,
    failed: counters.failed,
    skipped: counters.skipped,
    total: counters.total,
    added: counters.added,
    rate_per_s: reindex.ratePerS,
    eta_seconds: reindex.etaSeconds,
    last_error: reindex.lastError,
    revertible_until: reindex.revertibleUntil?.toISOString() ?? null,
    created_at: reindex.createdAt.toISOString(),
    started_at: reindex.startedAt?.toISOString() ?? null,
    finished_at: reindex.finishedAt?.toISOString() ?? null,
    started_by: reindex.startedBy,
  }
}

export function renderEstimate({ total, tokens, seconds, dims }: ReindexEstimate): ReindexPlan {
  return { total, est_tokens: tokens, est_seconds: seconds, dims }
}

export function renderFailure({
  fileId,
  filename,
  code,
  message,
  attempts,
}: FailedFile): ReindexFailure {
  return { file_id: fileId, filename, code, message, attempts }
}

function renderIndex({
  indexId,
  model,
  dims,
  chunkTokensMax,
  chunkOverlapTokens,
}: ReindexedIndex): ReindexPlace {
  return {
    index_id: String(indexId),
    model,
    dims,
    chunking: { max_tokens: chunkTokensMax, overlap_tokens: chunkOverlapTokens },
  }
}
