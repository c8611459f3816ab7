import { clearIndex } from './cleanup.ts'
import {
  countTarget,
  countTargetOnly,
  enqueueInSource,
  type FileCursor,
  findMissingInSource,
} from './file-store.ts'
import { endCountersOf } from './progress.ts'
import { isSearched, lockCollections, reroute } from './routing-store.ts'
import {
  changeIfCurrent,
  type DriverPosition,
  type NextStep,
  readNextPage,
  type StepDeps,
} from './steps.ts'
import type { Handle, ReindexChange, ReindexState } from './store.ts'

/** The steps that move files back to the source, until the target has nothing that the source lacks. */

const filesPerPage = 500

export async function moveBackward(
  deps: StepDeps,
  reindex: ReindexState,
  { position, signal }: { position: DriverPosition; signal: AbortSignal },
): Promise<NextStep> {
  const { store } = deps
  if (!(await store.query((handle) => isSearched(handle, reindex, reindex.targetIndexId)))) {
    return clearTarget(deps, reindex, signal)
  }
  const isRead = await readNextPage(reindex, position, (cursor) =>
    enqueueMissing(deps, reindex, cursor),
  )
  if (!isRead) return 'now'
  const dispatched = await position.dispatcher.step(reindex)
  if (typeof dispatched === 'object') return 'later'
  if (dispatched !== 'done') return dispatched
  const { waiting, failed } = await store.query((handle) => countTargetOnly(handle, reindex))
  if (waiting > 0) return restart(position)
  if (failed > 0 && !reindex.accepted) return waitForAcceptance(deps, reindex, failed)
  return (await leaveTarget(deps, reindex)) ? 'now' : restart(position)
}

async function enqueueMissing(
  { store, now }: StepDeps,
  reindex: ReindexState,
  cursor: FileCursor,
): Promise<string | null> {
  const { fileIds, after } = await store.query((handle) =>
    findMissingInSource(handle, reindex, { cursor, filesMax: filesPerPage }),
  )
  if (fileIds.length > 0) {
    await store.transact((transaction) =>
      enqueueInSource(transaction, reindex, { fileIds, at: now() }),
    )
  }
  return after
}

function restart(position: DriverPosition): NextStep {
  position.collection = 0
  position.after = null
  return 'later'
}

/** Files are given up only after a user accepts it. */
async function waitForAcceptance(
  deps: StepDeps,
  reindex: ReindexState,
  count: number,
): Promise<NextStep> {
  const lastError = `Files in the target that failed in the source: ${count}. Retry, or accept that they are no longer found.`
  if (reindex.lastError === lastError) return 'stop'
  await changeIfCurrent(deps, reindex, async () => ({ lastError }))
  return 'now'
}

/** Routes the collections to the source only. */
function leaveTarget(deps: StepDeps, reindex: ReindexState): Promise<boolean> {
  return changeIfCurrent(deps, reindex, async (transaction, current) => {
    await lockCollections(transaction, current)
    const { waiting, failed } = await countTargetOnly(transaction, current)
    if (waiting > 0 || (failed > 0 && !current.accepted)) return null
    await reroute(transaction, current, {
      from: { indexId: current.targetIndexId, targetIndexId: current.sourceIndexId },
      to: { indexId: current.sourceIndexId, targetIndexId: null },
    })
    return countEnd(deps, transaction, current)
  })
}

/** A reverted reindex keeps the counters of its completion. */
async function countEnd(
  deps: StepDeps,
  handle: Handle,
  reindex: ReindexState,
): Promise<ReindexChange> {
  if (reindex.endCounters !== null) return {}
  const counts = await countTarget(handle, reindex, deps.now())
  return { endCounters: endCountersOf(reindex, counts) }
}

async function clearTarget(
  deps: StepDeps,
  reindex: ReindexState,
  signal: AbortSignal,
): Promise<NextStep> {
  // A reindex cancelled before its target was searched has not been counted yet.
  if (reindex.endCounters === null) {
    await changeIfCurrent(deps, reindex, (transaction, current) =>
      countEnd(deps, transaction, current),
    )
    return 'now'
  }
  await clearIndex(deps, reindex.targetIndexId, signal)
  await changeIfCurrent(deps, reindex, async () => ({
    status: reindex.status === 'cancelling' ? 'cancelled' : 'reverted',
    finishedAt: deps.now(),
    lastError: null,
  }))
  return 'now'
}
