import { countersOf, paceOf } from './counters.ts'
import { countTarget } from './file-store.ts'
import type { Counters, Reindex } from './reindex.ts'
import type { Handle, Run } from './store.ts'

/** A reindex as it stands; until its end its files are counted for it. */
export async function viewOf(handle: Handle, run: Run, at: Date): Promise<Reindex> {
  const { counters, ...pace } = await progressOf(handle, run, at)
  return {
    id: run.id,
    status: run.status,
    source: { ...run.sourceSpec, indexId: run.sourceIndexId },
    target: { ...run.targetSpec, indexId: run.targetIndexId },
    collectionIds: run.collectionIds,
    counters,
    ...pace,
    lastError: run.lastError,
    revertibleUntil: run.status === 'completed' ? run.warmUntil : null,
    startedBy: run.startedBy,
    createdAt: run.createdAt,
    startedAt: run.startedAt,
    finishedAt: run.finishedAt,
  }
}

type Pace = Pick<Reindex, 'ratePerS' | 'etaSeconds'>

async function progressOf(
  handle: Handle,
  run: Run,
  at: Date,
): Promise<{ counters: Counters } & Pace> {
  if (run.endCounters !== null) {
    return { counters: run.endCounters, ratePerS: null, etaSeconds: null }
  }
  const count = await countTarget(handle, run, at)
  return { counters: countersOf(run, count), ...paceOf(run, count, at) }
}
