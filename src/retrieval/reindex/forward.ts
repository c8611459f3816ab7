import type { Transaction } from '#jobs/jobs.ts'
import { endCountersOf } from './counters.ts'
import { dropLater, keptUntil } from './drop.ts'
import {
  countFiles,
  countTarget,
  failFiles,
  forgetStrangers,
  isAnyPending,
  recruitPage,
  recruitRest,
} from './file-store.ts'
import { lockPlaces, lockUse, route } from './routing-store.ts'
import {
  become,
  feedOn,
  inCourse,
  type Next,
  nextPage,
  type Place,
  type StepDeps,
} from './steps.ts'
import { changeIndex, type Run, type RunChange } from './store.ts'
import { findLost } from './verify.ts'

/** The way of files from the source into the target. */

const filesPerPage = 1_000

/** Asks for the files page by page, and for the rest of them when the target begins to be filled. */
export async function gather(deps: StepDeps, run: Run, place: Place): Promise<Next> {
  const { store, now } = deps
  const isRead = await nextPage(run, place, (cursor) =>
    store.ask((handle) => recruitPage(handle, run, { cursor, filesMax: filesPerPage, at: now() })),
  )
  if (!isRead) return 'at once'
  await inCourse(deps, run, async (transaction) => {
    await lockPlaces(transaction, run)
    await forgetStrangers(transaction, run)
    await recruitRest(transaction, run, now())
    await route(transaction, run, {
      from: { indexId: run.sourceIndexId, targetIndexId: null },
      to: { indexId: run.sourceIndexId, targetIndexId: run.targetIndexId },
    })
    const total = await countFiles(transaction, run.collectionIds)
    return { status: 'running', startedAt: now(), total }
  })
  return 'at once'
}

export async function goForward(deps: StepDeps, run: Run, place: Place): Promise<Next> {
  const fed = await feedOn(deps, run, place)
  if (fed === 'at once' || fed === 'later' || fed === 'rest') return fed
  if (fed !== 'done') {
    const sentence = `One file after the other has failed. The last one: ${fed.failing}`
    await become(deps, run, 'paused', sentence)
    return 'at once'
  }
  await inCourse(deps, run, async (transaction, known) => {
    if (await isAnyPending(transaction, known)) return null
    const { failed } = await countTarget(transaction, known, deps.now())
    if (failed === 0 || known.accepted) return { status: 'verifying' }
    return { status: 'needs_attention', lastError: `Files that failed: ${failed}.` }
  })
  return 'at once'
}

/** Looks whether what was written down is true, and then lets the target take the source's place. */
export async function verify(deps: StepDeps, run: Run, signal: AbortSignal): Promise<Next> {
  const lost = await findLost(deps, run, signal)
  if (lost.length > 0) {
    await inCourse(deps, run, async (transaction, known) => {
      await failFiles(transaction, known, {
        fileIds: lost,
        code: 'not_in_target',
        message: 'The file was not found in the new index.',
        at: deps.now(),
      })
      return { status: 'running' }
    })
    return 'at once'
  }
  await inCourse(deps, run, (transaction, known) => finish(deps, transaction, known))
  return 'at once'
}

async function finish(deps: StepDeps, transaction: Transaction, run: Run): Promise<RunChange> {
  const at = deps.now()
  await lockPlaces(transaction, run)
  const missing = await recruitRest(transaction, run, at)
  const count = await countTarget(transaction, run, at)
  const mayEnd = count.failed === 0 || run.accepted
  if (missing > 0 || !mayEnd || (await isAnyPending(transaction, run))) {
    return { status: 'running', total: run.total + missing }
  }
  await route(transaction, run, {
    from: { indexId: run.sourceIndexId, targetIndexId: run.targetIndexId },
    to: { indexId: run.targetIndexId, targetIndexId: null },
  })
  await changeIndex(transaction, run.targetIndexId, { state: 'active', warmUntil: null })
  const warmUntil = keptUntil(deps)
  if ((await lockUse(transaction, run.sourceIndexId)) === 'unused') {
    await changeIndex(transaction, run.sourceIndexId, { state: 'warm', warmUntil })
  }
  await dropLater(deps, transaction, run, warmUntil)
  return {
    status: 'completed',
    finishedAt: at,
    warmUntil,
    lastError: null,
    endCounters: endCountersOf(run, count),
  }
}
