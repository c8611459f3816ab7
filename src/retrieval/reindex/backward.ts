import { endCountersOf } from './counters.ts'
import { clearIndex } from './drop.ts'
import { bringBack, countTarget, findLacking, findLosses } from './file-store.ts'
import { isUsedBy, lockPlaces, route } from './routing-store.ts'
import { feedOn, inCourse, type Next, nextPage, type Place, type StepDeps } from './steps.ts'
import type { Handle, Run, RunChange } from './store.ts'

/** The way of files back into the source, until nothing is lost without the target. */

const filesPerPage = 500

export async function goBack(
  deps: StepDeps,
  run: Run,
  { place, signal }: { place: Place; signal: AbortSignal },
): Promise<Next> {
  const { store } = deps
  if (!(await store.ask((handle) => isUsedBy(handle, run, run.targetIndexId)))) {
    return leaveTarget(deps, run, signal)
  }
  const isRead = await nextPage(run, place, (cursor) => askForLacking(deps, run, cursor))
  if (!isRead) return 'at once'
  const fed = await feedOn(deps, run, place)
  if (typeof fed === 'object') return 'later'
  if (fed !== 'done') return fed
  const losses = await store.ask((handle) => findLosses(handle, run))
  if (losses.waiting > 0) return lookAgain(place)
  if (losses.refused > 0 && !run.accepted) return refuse(deps, run, losses.refused)
  return (await settle(deps, run)) ? 'at once' : lookAgain(place)
}

async function askForLacking(
  { store, now }: StepDeps,
  run: Run,
  cursor: { collectionId: string; after: string | null },
): Promise<string | null> {
  const { fileIds, after } = await store.ask((handle) =>
    findLacking(handle, run, { cursor, filesMax: filesPerPage }),
  )
  if (fileIds.length > 0) {
    await store.transact((transaction) => bringBack(transaction, run, { fileIds, at: now() }))
  }
  return after
}

function lookAgain(place: Place): Next {
  place.collection = 0
  place.after = null
  return 'later'
}

/** Nothing is given up without somebody who says so. */
async function refuse(deps: StepDeps, run: Run, count: number): Promise<Next> {
  const lastError = `Files that are in the target alone, and failed in the source: ${count}. Retry, or accept that they are not found any more.`
  if (run.lastError === lastError) return 'rest'
  await inCourse(deps, run, async () => ({ lastError }))
  return 'at once'
}

/** From here on the source alone is searched. */
function settle(deps: StepDeps, run: Run): Promise<boolean> {
  return inCourse(deps, run, async (transaction, known) => {
    await lockPlaces(transaction, known)
    const { waiting, refused } = await findLosses(transaction, known)
    if (waiting > 0 || (refused > 0 && !known.accepted)) return null
    await route(transaction, known, {
      from: { indexId: known.targetIndexId, targetIndexId: known.sourceIndexId },
      to: { indexId: known.sourceIndexId, targetIndexId: null },
    })
    return countEnd(deps, transaction, known)
  })
}

/** What was reverted keeps the counters that it had when it was completed. */
async function countEnd(deps: StepDeps, handle: Handle, run: Run): Promise<RunChange> {
  if (run.endCounters !== null) return {}
  const count = await countTarget(handle, run, deps.now())
  return { endCounters: endCountersOf(run, count) }
}

async function leaveTarget(deps: StepDeps, run: Run, signal: AbortSignal): Promise<Next> {
  // One that was cancelled before its target was searched was never settled.
  if (run.endCounters === null) {
    await inCourse(deps, run, (transaction, known) => countEnd(deps, transaction, known))
    return 'at once'
  }
  await clearIndex(deps, run.targetIndexId, signal)
  await inCourse(deps, run, async () => ({
    status: run.status === 'cancelling' ? 'cancelled' : 'reverted',
    finishedAt: deps.now(),
    lastError: null,
  }))
  return 'at once'
}
