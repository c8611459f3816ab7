import type { Page, PageRequest } from '#retrieval/collections/collections.ts'
import type { IndexSpec } from '#retrieval/index/chunk.ts'

/**
 * A change of collections from one index to another, while they are searched and filled. Each file is
 * searched in the target once it is there, and in the source until then.
 */
export type Reindex = {
  readonly id: string
  readonly status: ReindexStatus
  readonly source: ReindexedIndex
  readonly target: ReindexedIndex
  readonly collectionIds: readonly string[]
  readonly counters: Counters
  /** Over the last minute; null where nothing is under way. */
  readonly ratePerS: number | null
  readonly etaSeconds: number | null
  readonly lastError: string | null
  /** How long it can be reverted; null: it cannot. */
  readonly revertibleUntil: Date | null
  readonly startedBy: string
  readonly createdAt: Date
  readonly startedAt: Date | null
  readonly finishedAt: Date | null
}

/** On the way into the target. */
export const forwardStatuses = [
  'queued',
  'running',
  'paused',
  'needs_attention',
  'verifying',
] as const

const backwardStatuses = ['cancelling', 'reverting'] as const

/** In these a reindex has collections between two indexes. */
export const openStatuses = [...forwardStatuses, ...backwardStatuses] as const

/** In these nothing will change any more by itself. A completed one can be reverted for a while. */
export const endedStatuses = ['completed', 'cancelled', 'reverted'] as const

export const reindexStatuses = [...openStatuses, ...endedStatuses] as const

export type ReindexStatus = (typeof reindexStatuses)[number]

export type ReindexedIndex = IndexSpec & { readonly indexId: number }

/**
 * Of the files that were there at the start: `completed + failed + skipped <= total`, and equal at
 * the end. What is gone since, has no text, or was left undone by a cancel, is skipped.
 */
export type Counters = {
  readonly completed: number
  readonly failed: number
  readonly skipped: number
  readonly total: number
  /** Files that came later and went to the target at once. */
  readonly added: number
}

export type ReindexParams = {
  readonly embeddingModel: string
  /** Null: as the source is split. */
  readonly chunking: { readonly tokensMax: number; readonly overlapTokens: number } | null
  /** Names or ids; null: all that are not so already. */
  readonly collections: readonly string[] | null
}

/** What a reindex would have to do. */
export type ReindexEstimate = {
  readonly total: number
  readonly tokens: number
  readonly seconds: number
  readonly dims: number
}

export type FailedFile = {
  readonly fileId: string
  readonly filename: string
  readonly code: string
  readonly message: string
  readonly attempts: number
}

export type ReindexAction = 'cancel' | 'pause' | 'resume' | 'retry' | 'accept' | 'revert'

/** Every method that names a reindex throws `not_found` where there is none. */
export type Reindexes = {
  /**
   * Throws `unprocessable` of codes `model_not_found`, `model_mode_mismatch`, `too_many_dimensions`,
   * `collection_not_found`, `several_source_indexes`, `already_current`; `conflict` of code
   * `reindex_running`; `upstream_error` of code `embedding_probe_failed`.
   */
  start(userId: string, wish: ReindexParams, signal: AbortSignal): Promise<Reindex>
  /** Throws the same, and changes nothing. */
  estimate(wish: ReindexParams, signal: AbortSignal): Promise<ReindexEstimate>
  list(page: PageRequest, status: ReindexStatus | null): Promise<Page<Reindex>>
  find(id: string): Promise<Reindex>
  /** As it is now, each second, with each change of its course, and at its end. */
  watch(id: string, signal: AbortSignal): Promise<AsyncIterator<Reindex>>
  /**
   * What changes nothing any more is no error. Throws `conflict` of code `reindex_state` where the
   * action does not go with the status, and `gone` of code `source_dropped`.
   */
  act(id: string, action: ReindexAction): Promise<Reindex>
  /** The files that could not be brought where the reindex brings them. */
  failures(id: string, page: PageRequest): Promise<Page<FailedFile>>
}

export function isEnded(status: ReindexStatus): boolean {
  return endedStatuses.some((ended) => ended === status)
}

/** Whether its files are on their way back into the source. */
export function isGoingBack(status: ReindexStatus): boolean {
  return backwardStatuses.some((backward) => backward === status)
}
