import type { Transaction } from '#db/client.ts'
import { createBackgroundContext } from '#lib/request-context.ts'
import { titleOf } from '#retrieval/ingest/title.ts'
import { reindexQueue } from './cleanup.ts'
import {
  countFiles,
  countTarget,
  dequeueRemoved,
  enqueueMissing,
  enqueuePage,
  failFiles,
  hasPending,
} from './file-store.ts'
import { endCountersOf } from './progress.ts'
import { lockCollections, lockIfUnused, reroute } from './routing-store.ts'
import {
  changeIfCurrent,
  type DriverPosition,
  type NextStep,
  readNextPage,
  type StepDeps,
} from './steps.ts'
import { type ReindexChange, type ReindexState, updateIndex } from './store.ts'
import { findMiscounted, isFound, samplePassages, type VerifiedFile } from './verification-store.ts'

/** The steps that move files from the source to the target. */

const filesPerPage = 1_000
/** Files whose passages are searched for during verification. */
const samplesMax = 32
/** Further files are found by the next verification. */
const miscountedMax = 1_000
const msPerHour = 3_600_000

/** Collects the files page by page, then routes new files to the target. */
export async function collectFiles(
  deps: StepDeps,
  reindex: ReindexState,
  position: DriverPosition,
): Promise<NextStep> {
  const { store, now } = deps
  const isRead = await readNextPage(reindex, position, (cursor) =>
    store.query((handle) =>
      enqueuePage(handle, reindex, { cursor, filesMax: filesPerPage, at: now() }),
    ),
  )
  if (!isRead) return 'now'
  await changeIfCurrent(deps, reindex, async (transaction) => {
    await lockCollections(transaction, reindex)
    await dequeueRemoved(transaction, reindex)
    await enqueueMissing(transaction, reindex, now())
    await reroute(transaction, reindex, {
      from: { indexId: reindex.sourceIndexId, targetIndexId: null },
      to: { indexId: reindex.sourceIndexId, targetIndexId: reindex.targetIndexId },
    })
    const total = await countFiles(transaction, reindex.collectionIds)
    return { status: 'running', startedAt: now(), total }
  })
  return 'now'
}

export async function moveForward(
  deps: StepDeps,
  reindex: ReindexState,
  position: DriverPosition,
): Promise<NextStep> {
  const dispatched = await position.dispatcher.step(reindex)
  if (typeof dispatched === 'object') {
    const lastError = `Consecutive files failed. The last error: ${dispatched.failing}`
    await changeIfCurrent(deps, reindex, async () => ({ status: 'paused', lastError }))
    return 'now'
  }
  if (dispatched !== 'done') return dispatched
  await changeIfCurrent(deps, reindex, async (transaction, current) => {
    if (await hasPending(transaction, current)) return null
    const { failed } = await countTarget(transaction, current, deps.now())
    if (failed === 0 || current.accepted) return { status: 'verifying' }
    return { status: 'needs_attention', lastError: `Files that failed: ${failed}.` }
  })
  return 'now'
}

/** Checks the content of the target, then makes it the index of the collections. */
export async function verify(
  deps: StepDeps,
  reindex: ReindexState,
  signal: AbortSignal,
): Promise<NextStep> {
  const missing = await findMissing(deps, reindex, signal)
  await changeIfCurrent(deps, reindex, async (transaction, current) => {
    const failed = await failFiles(transaction, current, {
      files: missing,
      code: 'not_in_target',
      message: 'The file was not found in the new index.',
      at: deps.now(),
    })
    return failed === 0 ? complete(deps, transaction, current) : { status: 'running' }
  })
  return 'now'
}

/** Files marked as done whose passages are missing in the target. */
async function findMissing(
  { database, store, embedders }: StepDeps,
  { targetIndexId: indexId, targetSpec }: ReindexState,
  signal: AbortSignal,
): Promise<readonly VerifiedFile[]> {
  const miscounted = await store.query((handle) => findMiscounted(handle, indexId, miscountedMax))
  const samples = await store.query((handle) => samplePassages(handle, indexId, samplesMax))
  if (samples.length === 0) return miscounted
  const context = createBackgroundContext(signal)
  const embedder = await embedders.find(targetSpec.model, context.principal)
  const missing = [...miscounted]
  for (const { id: passageId, fileId, updatedAt, text, filename } of samples) {
    const options = { purpose: 'passage', title: titleOf(filename), context } as const
    const { vectors } = await embedder.embed([text], options)
    const vector = vectors[0] ?? new Float32Array()
    const isThere =
      vector.length === targetSpec.dims &&
      (await store.query((handle) =>
        isFound(handle, { indexId, kind: database.kind }, { passageId, vector }),
      ))
    if (!isThere) missing.push({ fileId, updatedAt })
  }
  return missing
}

async function complete(
  deps: StepDeps,
  transaction: Transaction,
  reindex: ReindexState,
): Promise<ReindexChange> {
  const at = deps.now()
  const { sourceIndexId, targetIndexId } = reindex
  await lockCollections(transaction, reindex)
  const missing = await enqueueMissing(transaction, reindex, at)
  const counts = await countTarget(transaction, reindex, at)
  const hasFailures = counts.failed > 0 && !reindex.accepted
  if (missing > 0 || hasFailures || (await hasPending(transaction, reindex))) {
    return { status: 'running', total: reindex.total + missing }
  }
  await reroute(transaction, reindex, {
    from: { indexId: sourceIndexId, targetIndexId },
    to: { indexId: targetIndexId, targetIndexId: null },
  })
  await updateIndex(transaction, targetIndexId, { state: 'active', warmUntil: null })
  const warmUntil = new Date(at.getTime() + deps.settings.warmHours * msPerHour)
  if (await lockIfUnused(transaction, sourceIndexId)) {
    await updateIndex(transaction, sourceIndexId, { state: 'warm', warmUntil })
  }
  await deps.jobs.add(transaction, {
    queue: reindexQueue,
    key: `${reindex.id}:drop`,
    payload: { reindexId: reindex.id, task: 'drop' },
    runAt: warmUntil,
  })
  return {
    status: 'completed',
    finishedAt: at,
    warmUntil,
    lastError: null,
    endCounters: endCountersOf(reindex, counts),
  }
}
