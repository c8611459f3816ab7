import type { Count } from './file-store.ts'
import type { Counters } from './reindex.ts'
import type { Run } from './store.ts'

/** While it runs: what is not in the target any more was deleted meanwhile. */
export function countersOf({ total, startedAt }: Run, count: Count): Counters {
  const { completed, failed, added } = count
  // Until then the files are only being gathered.
  if (startedAt === null) return { completed: 0, failed: 0, skipped: 0, total, added: 0 }
  const gone = Math.max(0, total - completed - failed - count.skipped - count.pending)
  return { completed, failed, skipped: count.skipped + gone, total, added }
}

/** At the end: what nothing came of was skipped. */
export function endCountersOf(run: Run, count: Count): Counters {
  const { completed, failed, added, total } = countersOf(run, count)
  return { completed, failed, skipped: total - completed - failed, total, added }
}

const rateSecondsMax = 60

/** Files a second over the last minute, and how long the rest takes at this rate. */
export function paceOf(
  { status, startedAt }: Run,
  { recent, pending }: Count,
  at: Date,
): { ratePerS: number | null; etaSeconds: number | null } {
  if (status !== 'running' || startedAt === null) return { ratePerS: null, etaSeconds: null }
  const ranS = Math.max(1, (at.getTime() - startedAt.getTime()) / 1_000)
  const ratePerS = recent / Math.min(rateSecondsMax, ranS)
  return { ratePerS, etaSeconds: ratePerS > 0 ? Math.ceil(pending / ratePerS) : null }
}
