import { countTarget, type TargetCounts } from './file-store.ts'
import type { Counters, Reindex } from './reindex.ts'
import type { Handle, ReindexState } from './store.ts'

/** The public view of a reindex. Files are counted until it ends. */
export async function readReindex(handle: Handle, state: ReindexState, at: Date): Promise<Reindex> {
  const counts = state.endCounters === null ? await countTarget(handle, state, at) : null
  return {
    id: state.id,
    status: state.status,
    source: { ...state.sourceSpec, indexId: state.sourceIndexId },
    target: { ...state.targetSpec, indexId: state.targetIndexId },
    collectionIds: state.collectionIds,
    counters: state.endCounters ?? countersOf(state, counts ?? noCounts),
    ...(counts === null ? { ratePerS: null, etaSeconds: null } : rateOf(state, counts, at)),
    lastError: state.lastError,
    revertibleUntil: state.status === 'completed' ? state.warmUntil : null,
    startedBy: state.startedBy,
    createdAt: state.createdAt,
    startedAt: state.startedAt,
    finishedAt: state.finishedAt,
  }
}

const noCounts = { completed: 0, failed: 0, skipped: 0, pending: 0, recent: 0, added: 0 }

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
