import { countTarget, type TargetCounts } from './file-store.ts'
import type { Counters } from './reindex.ts'
import type { Handle, ReindexState } from './store.ts'

/** A reindex with its progress. */
export type Reindex = ReindexState & {
  readonly counters: Counters
  /** Files per second over the last minute; null unless it is running. */
  readonly ratePerS: number | null
  readonly etaSeconds: number | null
}

/** Counts the files until the reindex ends. */
export async function readProgress(
  handle: Handle,
  state: ReindexState,
  at: Date,
): Promise<Reindex> {
  const { endCounters } = state
  if (endCounters !== null) {
    return { ...state, counters: endCounters, ratePerS: null, etaSeconds: null }
  }
  const counts = await countTarget(handle, state, at)
  return { ...state, counters: countersOf(state, counts), ...rateOf(state, counts, at) }
}

/** During the reindex, files missing in the target were deleted. */
function countersOf({ total, startedAt }: ReindexState, counts: TargetCounts): Counters {
  const { completed, failed, added } = counts
  // Until the start files are still being collected.
  if (startedAt === null) return { completed: 0, failed: 0, skipped: 0, total, added: 0 }
  const deleted = Math.max(0, total - completed - failed - counts.skipped - counts.pending)
  return { completed, failed, skipped: counts.skipped + deleted, total, added }
}

/** At the end, every other file counts as skipped. */
export function endCountersOf(state: ReindexState, counts: TargetCounts): Counters {
  const { completed, failed, added, total } = countersOf(state, counts)
  return { completed, failed, skipped: total - completed - failed, total, added }
}

const rateSecondsMax = 60

function rateOf(
  { status, startedAt }: ReindexState,
  { recent, pending }: TargetCounts,
  at: Date,
): Pick<Reindex, 'ratePerS' | 'etaSeconds'> {
  if (status !== 'running' || startedAt === null) return { ratePerS: null, etaSeconds: null }
  const elapsedS = Math.max(1, (at.getTime() - startedAt.getTime()) / 1_000)
  const ratePerS = recent / Math.min(rateSecondsMax, elapsedS)
  return { ratePerS, etaSeconds: ratePerS > 0 ? Math.ceil(pending / ratePerS) : null }
}
