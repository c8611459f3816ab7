import type { Page, PageRequest } from '#retrieval/collections/collections.ts'
import type { IndexSpec } from '#retrieval/index/chunk.ts'

/**
 * Moves collections from a source index to a target index while they stay in use. Each file is
 * searched in the source until it is in the target.
 */
export type Reindex = {
  readonly id: string
  readonly status: ReindexStatus
  readonly source: ReindexedIndex
  readonly target: ReindexedIndex
  readonly collectionIds: readonly string[]
  readonly counters: Counters
  /** Files per second over the last minute; null unless it is running. */
  readonly ratePerS: number | null
  readonly etaSeconds: number | null
  readonly lastError: string | null
  /** Null: it cannot be reverted. */
  readonly revertibleUntil: Date | null
  readonly startedBy: string
  readonly createdAt: Date
  readonly startedAt: Date | null
  readonly finishedAt: Date | null
}

/** Files move to the target. */
export const forwardStatuses = [
  'queued',
  'running',
  'paused',
  'needs_attention',
  'verifying',
] as const

/** Files move back to the source. */
const backwardStatuses = ['cancelling', 'reverting'] as const

/** The collections are between two indexes. */
export const openStatuses = [...forwardStatuses, ...backwardStatuses] as const

/** A completed reindex can be reverted while its source is retained. */
export const endedStatuses = ['completed', 'cancelled', 'reverted'] as const

export const reindexStatuses = [...openStatuses, ...endedStatuses] as const

export type ReindexStatus = (typeof reindexStatuses)[number]

export type ReindexedIndex = IndexSpec & { readonly indexId: number }

/**
 * Counts of the files at the start: `completed + failed + skipped <= total`, equal at the end.
 * Skipped files were deleted, have no text, or were not processed before a cancellation.
 */
export type Counters = {
  readonly completed: number
  readonly failed: number
  readonly skipped: number
  readonly total: number
  /** Files added later, which went to the target directly. */
  readonly added: number
}

export type ReindexParams = {
  readonly embeddingModel: string
  /** Null: the chunking of the source. */
  readonly chunking: { readonly tokensMax: number; readonly overlapTokens: number } | null
  /** Names or ids; null: all collections that need the change. */
  readonly collections: readonly string[] | null
}

/** The expected effort. */
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

/** Methods with an id throw `not_found`. */
export type Reindexes = {
  /**
   * Throws `unprocessable` (`model_not_found`, `model_mode_mismatch`, `too_many_dimensions`,
   * `collection_not_found`, `several_source_indexes`, `already_current`), `conflict`
   * (`reindex_running`) and `upstream_error` (`embedding_probe_failed`).
   */
  start(userId: string, params: ReindexParams, signal: AbortSignal): Promise<Reindex>
  /** Throws like `start` and changes nothing. */
  estimate(params: ReindexParams, signal: AbortSignal): Promise<ReindexEstimate>
  list(page: PageRequest, status: ReindexStatus | null): Promise<Page<Reindex>>
  find(id: string): Promise<Reindex>
  /** Yields the present state, then one per second and per change of status, until the end. */
  watch(id: string, signal: AbortSignal): Promise<AsyncIterator<Reindex>>
  /**
   * Succeeds without effect if there is nothing to change. Throws `conflict` (`reindex_state`) if
   * the status does not allow the action, and `gone` (`source_dropped`).
   */
  act(id: string, action: ReindexAction): Promise<Reindex>
  /** The files that could not be moved. */
  failures(id: string, page: PageRequest): Promise<Page<FailedFile>>
}

export function isEnded(status: ReindexStatus): boolean {
  return endedStatuses.some((ended) => ended === status)
}

export function isBackward(status: ReindexStatus): boolean {
  return backwardStatuses.some((backward) => backward === status)
}
