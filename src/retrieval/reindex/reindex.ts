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
  /** References (see `lookup-store.ts`); null: all collections that need the change. */
  readonly collections: readonly string[] | null
}

export type ReindexAction = 'cancel' | 'pause' | 'resume' | 'retry' | 'accept' | 'revert'

export function isEnded(status: ReindexStatus): boolean {
  return endedStatuses.some((ended) => ended === status)
}

export function isBackward(status: ReindexStatus): boolean {
  return backwardStatuses.some((backward) => backward === status)
}
