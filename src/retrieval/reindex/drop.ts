import type { Transaction } from '#jobs/jobs.ts'
import { forgetProgress, tidyPage } from './drop-store.ts'
import { lockUse } from './routing-store.ts'
import type { StepDeps } from './steps.ts'
import {
  changeIndex,
  changeRun,
  findIndexState,
  isKeptByOthers,
  lockRun,
  type Run,
} from './store.ts'

/** The end of an index, or of what a reindex has left in one that others use. */

export const driveQueue = 'reindex'

const rowsPerStatement = 10_000
const filesPerPage = 200
const millisPerHour = 3_600_000

export function keptUntil({ settings, now }: Pick<StepDeps, 'settings' | 'now'>): Date {
  return new Date(now().getTime() + settings.warmHours * millisPerHour)
}

/** Has the source dropped when nobody can go back to it any more. */
export async function dropLater(
  { jobs }: Pick<StepDeps, 'jobs'>,
  transaction: Transaction,
  { id }: Pick<Run, 'id'>,
  runAt: Date,
): Promise<void> {
  const payload = { reindexId: id, task: 'drop' }
  await jobs.add(transaction, { queue: driveQueue, key: `${id}:drop`, payload, runAt })
}

/** Unless it was gone back to in the meantime. */
export async function dropSource(
  deps: Omit<StepDeps, 'settings'>,
  id: string,
  signal: AbortSignal,
): Promise<void> {
  const { store, notifier, now } = deps
  const indexId = await store.transact(async (transaction) => {
    const run = await lockRun(transaction, id)
    if (run?.status !== 'completed') return null
    if (run.warmUntil !== null) {
      await changeRun(transaction, id, { warmUntil: null }, now())
      await notifier.notify(transaction, id)
    }
    const { sourceIndexId } = run
    if ((await lockUse(transaction, sourceIndexId)) !== 'unused') return sourceIndexId
    if (await isKeptByOthers(transaction, sourceIndexId, id)) return null
    await changeIndex(transaction, sourceIndexId, { state: 'dropping', warmUntil: null })
    return sourceIndexId
  })
  if (indexId !== null) await clearIndex(deps, indexId, signal)
}

/** Drops an index that nobody uses; from one that is used goes what none of its users wants. */
export async function clearIndex(
  { store, chunkTables }: Pick<StepDeps, 'store' | 'chunkTables'>,
  indexId: number,
  signal: AbortSignal,
): Promise<void> {
  const state = await store.ask((handle) => findIndexState(handle, indexId))
  if (state === undefined) return
  if (state !== 'dropping') {
    const tidy = (after: string | null) =>
      store.transact((transaction) =>
        tidyPage(transaction, indexId, { after, filesMax: filesPerPage }),
      )
    for (let after = await tidy(null); after !== null; after = await tidy(after)) {
      signal.throwIfAborted()
    }
    return
  }
  const forget = () =>
    store.transact((transaction) => forgetProgress(transaction, indexId, rowsPerStatement))
  while (await forget()) signal.throwIfAborted()
  await chunkTables.drop(indexId)
}
