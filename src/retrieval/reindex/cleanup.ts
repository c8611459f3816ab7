import { cleanPage, deleteFileRows } from './cleanup-store.ts'
import { lockIfUnused } from './routing-store.ts'
import type { StepDeps } from './steps.ts'
import {
  findIndexState,
  isRetainedByOthers,
  lockReindex,
  updateIndex,
  updateReindex,
} from './store.ts'

/** Drops indexes, and the files of a reindex in indexes that are still in use. */

/** The queue of `driver.ts`, and of delayed drops. */
export const reindexQueue = 'reindex'

const rowsPerStatement = 10_000
const filesPerPage = 200

/** Drops the source of a completed reindex, unless it is in use or retained by another one. */
export async function dropSource(deps: StepDeps, id: string, signal: AbortSignal): Promise<void> {
  const { store, notifier, now } = deps
  const indexId = await store.transact(async (transaction) => {
    const reindex = await lockReindex(transaction, id)
    if (reindex?.status !== 'completed') return null
    if (reindex.warmUntil !== null) {
      await updateReindex(transaction, id, { warmUntil: null }, now())
      await notifier.notify(transaction, id)
    }
    const { sourceIndexId } = reindex
    if (!(await lockIfUnused(transaction, sourceIndexId))) return sourceIndexId
    if (await isRetainedByOthers(transaction, sourceIndexId, id)) return null
    await updateIndex(transaction, sourceIndexId, { state: 'dropping', warmUntil: null })
    return sourceIndexId
  })
  if (indexId !== null) await clearIndex(deps, indexId, signal)
}

/** Drops an index in state `dropping`; of any other index, deletes the chunks that nothing needs. */
export async function clearIndex(
  { store, chunkTables }: StepDeps,
  indexId: number,
  signal: AbortSignal,
): Promise<void> {
  const state = await store.query((handle) => findIndexState(handle, indexId))
  if (state === undefined) return
  if (state !== 'dropping') {
    let after: string | null = null
    do {
      signal.throwIfAborted()
      const page: { after: string | null; filesMax: number } = { after, filesMax: filesPerPage }
      after = await store.transact((transaction) => cleanPage(transaction, indexId, page))
    } while (after !== null)
    return
  }
  const deleteSome = () =>
    store.transact((transaction) => deleteFileRows(transaction, indexId, rowsPerStatement))
  while (await deleteSome()) signal.throwIfAborted()
  await chunkTables.drop(indexId)
}
