import type { Config } from '#config/schema.ts'
import type { ChangeNotifier } from '#db/change-notifier.ts'
import type { Transaction } from '#db/client.ts'
import type { Embedders } from '#embedding/embedder.ts'
import type { Jobs } from '#jobs/jobs.ts'
import type { ChunkTables } from '#retrieval/index/tables.ts'
import type { Ingest } from '#retrieval/ingest/ingest.ts'
import type { Log } from '#telemetry/log.ts'
import type { createDispatcher } from './dispatcher.ts'
import type { FileCursor } from './file-store.ts'
import {
  lockReindex,
  type ReindexChange,
  type ReindexDatabase,
  type ReindexState,
  type ReindexStore,
  updateReindex,
} from './store.ts'

export type ReindexDeps = {
  database: ReindexDatabase
  jobs: Pick<Jobs, 'add' | 'process'>
  embedders: Embedders
  chunkTables: Pick<ChunkTables, 'create' | 'drop'>
  ingest: Pick<Ingest, 'ingestFile' | 'failFile'>
  settings: Pick<Config['retrieval'], 'warmHours'>
  log: Pick<Log, 'warn'>
  now: () => Date
}

export type StepDeps = ReindexDeps & {
  store: ReindexStore
  notifier: ChangeNotifier
  /** Interval of checks for processed files. */
  pollMs: number
}

/** When the next step is due; `stop`: after an action of a user. */
export type NextStep = 'now' | 'later' | 'stop'

/** The position of a driver in one version of a reindex. In memory only; a new driver starts over. */
export type DriverPosition = {
  readonly version: number
  readonly dispatcher: ReturnType<typeof createDispatcher>
  /** The collection that is read, and the last file read. */
  collection: number
  after: string | null
}

/**
 * Applies a change if the reindex still has the observed status; null: no change. Returns whether
 * the reindex has changed.
 */
export function changeIfCurrent(
  { store, notifier, now }: StepDeps,
  observed: ReindexState,
  work: (transaction: Transaction, reindex: ReindexState) => Promise<ReindexChange | null>,
): Promise<boolean> {
  return store.transact(async (transaction) => {
    const reindex = await lockReindex(transaction, observed.id)
    if (reindex === undefined || reindex.status !== observed.status) return true
    const change = await work(transaction, reindex)
    if (change === null) return false
    await updateReindex(transaction, reindex.id, change, now())
    await notifier.notify(transaction, reindex.id)
    return true
  })
}

/** Reads the next page of the collections; returns whether all were read before. */
export async function readNextPage(
  { collectionIds }: ReindexState,
  position: DriverPosition,
  read: (cursor: FileCursor) => Promise<string | null>,
): Promise<boolean> {
  const collectionId = collectionIds[position.collection]
  if (collectionId === undefined) return true
  position.after = await read({ collectionId, after: position.after })
  if (position.after === null) position.collection += 1
  return false
}
