import type { Config } from '#config/schema.ts'
import type { ChangeNotifier } from '#db/change-notifier.ts'
import type { Embedders } from '#embedding/embedder.ts'
import type { Jobs, Transaction } from '#jobs/jobs.ts'
import type { ChunkTables } from '#retrieval/index/chunk.ts'
import { createFeed, type Feed } from './feed.ts'
import { isAnyPending } from './file-store.ts'
import type { ReindexStatus } from './reindex.ts'
import {
  changeRun,
  lockRun,
  type ReindexDatabase,
  type Run,
  type RunChange,
  type runStore,
} from './store.ts'

/** What the parts of the way need of the world. */
export type StepDeps = {
  database: Pick<ReindexDatabase, 'kind'>
  store: ReturnType<typeof runStore>
  notifier: ChangeNotifier
  jobs: Pick<Jobs, 'add'>
  embedders: Embedders
  chunkTables: Pick<ChunkTables, 'drop'>
  settings: Pick<Config['retrieval'], 'warmHours'>
  now: () => Date
}

/** What comes after a step: the next one at once, or after a while, or nothing until somebody acts. */
export type Next = 'at once' | 'later' | 'rest'

/** How far whoever drives a reindex has come; lost with them, and found again from the rows. */
export type Place = {
  readonly version: number
  readonly feed: Feed
  /** Which collection is gone through, and behind which file. */
  collection: number
  after: string | null
}

/** Another one after each change of the course. */
export function placeFor({ version }: Pick<Run, 'version'>, deps: StepDeps): Place {
  return { version, feed: createFeed(deps), collection: 0, after: null }
}

/**
 * Does something if the reindex still has the status that it was seen in; what it returns becomes of
 * it. Says whether the course has changed.
 */
export function inCourse(
  { store, notifier, now }: StepDeps,
  seen: Run,
  work: (transaction: Transaction, run: Run) => Promise<RunChange | null>,
): Promise<boolean> {
  return store.transact(async (transaction) => {
    const run = await lockRun(transaction, seen.id)
    if (run === undefined || run.status !== seen.status) return true
    const change = await work(transaction, run)
    if (change === null) return false
    await changeRun(transaction, run.id, change, now())
    await notifier.notify(transaction, run.id)
    return true
  })
}

export function become(
  deps: StepDeps,
  run: Run,
  status: ReindexStatus,
  lastError: string | null,
): Promise<boolean> {
  return inCourse(deps, run, async () => ({ status, lastError }))
}

/**
 * Goes through the collections of a reindex page by page, a file after the other; says whether the end
 * has come.
 */
export async function nextPage(
  run: Run,
  place: Place,
  read: (cursor: { collectionId: string; after: string | null }) => Promise<string | null>,
): Promise<boolean> {
  const collectionId = run.collectionIds[place.collection]
  if (collectionId === undefined) return true
  place.after = await read({ collectionId, after: place.after })
  if (place.after === null) place.collection += 1
  return false
}

/** Hands files out until none waits. */
export async function feedOn(
  { store }: StepDeps,
  run: Run,
  place: Place,
): Promise<'done' | Next | { failing: string }> {
  const fed = await place.feed.step(run)
  if (typeof fed === 'object') return fed
  if (fed === 'more') return 'at once'
  if (fed === 'busy') return 'later'
  return (await store.ask((handle) => isAnyPending(handle, run))) ? 'later' : 'done'
}
