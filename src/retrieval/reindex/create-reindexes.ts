import type { Config } from '#config/schema.ts'
import { type ChangeNotifier, createChangeNotifier } from '#db/change-notifier.ts'
import type { Embedders } from '#embedding/embedder.ts'
import type { Jobs, Transaction } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import { isUuid } from '#lib/uuid.ts'
import { pageOf } from '#retrieval/collections/members.ts'
import type { ChunkTables } from '#retrieval/index/chunk.ts'
import { checkDims } from '#retrieval/index/tables.ts'
import type { Ingest } from '#retrieval/ingest/ingest.ts'
import type { Log } from '#telemetry/log.ts'
import { takeAction } from './actions.ts'
import { type Choice, choose, isRunning } from './choose.ts'
import { driveQueue } from './drop.ts'
import { estimate } from './estimate.ts'
import { countFiles, listFailures } from './file-store.ts'
import { type Probe, probeModel } from './probe.ts'
import type { ReindexAction, Reindexes, ReindexParams } from './reindex.ts'
import { findPlaces } from './routing-store.ts'
import {
  type Handle,
  insertRun,
  isUnderWay,
  lockBeginnings,
  lockRun,
  type ReindexDatabase,
  type Run,
  readRun,
  runStore,
} from './store.ts'
import { viewOf } from './view.ts'
import { createWatch } from './watch.ts'
import { takeUpWork } from './work.ts'

export type ReindexDeps = {
  database: ReindexDatabase
  jobs: Pick<Jobs, 'add' | 'process'>
  embedders: Embedders
  chunkTables: Pick<ChunkTables, 'create' | 'drop'>
  ingest: Pick<Ingest, 'bring' | 'giveUp'>
  settings: Pick<Config['retrieval'], 'warmHours'>
  log: Pick<Log, 'warn'>
  now: () => Date
  times?: Partial<ReindexTimes>
}

type ReindexTimes = {
  /** How often it is looked whether files have come to an end. */
  readonly lookEveryMs: number
  /** How often who watches is told. */
  readonly tellEveryMs: number
}

const defaultTimes: ReindexTimes = { lookEveryMs: 500, tellEveryMs: 1_000 }

type Parts = ReindexDeps & { store: ReturnType<typeof runStore>; notifier: ChangeNotifier }

/** Reindexes, and the work of those that any process has begun. */
export async function createReindexes(deps: ReindexDeps): Promise<Reindexes> {
  const { database, now } = deps
  const { lookEveryMs, tellEveryMs } = { ...defaultTimes, ...deps.times }
  const store = runStore(database)
  const notifier = await createChangeNotifier(database, 'reindex')
  const parts = { ...deps, store, notifier }
  takeUpWork({ ...parts, lookEveryMs })
  const view = (handle: Handle, run: Run) => viewOf(handle, run, now())
  const find: Reindexes['find'] = (id) =>
    store.ask(async (handle) => view(handle, await existing(handle, id)))
  return {
    async start(userId, wish, signal) {
      const { choice } = await plan(parts, wish, signal)
      return find(await begin(parts, userId, choice))
    },
    async estimate(wish, signal) {
      const { choice, probe } = await plan(parts, wish, signal)
      return store.ask((handle) => estimate(handle, choice, probe))
    },
    async list(page, status) {
      const { items, hasMore } = pageOf(await store.list(page, status), page)
      const views = await store.ask((handle) => Promise.all(items.map((run) => view(handle, run))))
      return { items: views, hasMore }
    },
    find,
    watch: createWatch(find, { notifier, tellEveryMs }),
    act: (id, action) => act(parts, id, action),
    failures: (id, page) =>
      store.ask(async (handle) =>
        pageOf(await listFailures(handle, await existing(handle, id), page), page),
      ),
  }
}

/** What is to be changed into what; the model has shown that it can. */
async function plan(
  { store, embedders }: Parts,
  wish: ReindexParams,
  signal: AbortSignal,
): Promise<{ choice: Choice; probe: Probe }> {
  const places = await store.ask((handle) => findPlaces(handle, wish.collections))
  const probe = await probeModel(embedders, wish.embeddingModel, signal)
  const choice = choose(places, wish, probe)
  checkDims(choice.target)
  const isBusy = await store.ask((handle) => isUnderWay(handle, choice.sourceIndexId, null))
  if (isBusy) throw isRunning(null)
  return { choice, probe }
}

async function begin(parts: Parts, userId: string, choice: Choice): Promise<string> {
  const { store, chunkTables, now } = parts
  const { sourceIndexId, source, target, collectionIds } = choice
  const id = Bun.randomUUIDv7()
  await store.transact(async (transaction) => {
    await lockBeginnings(transaction)
    if (await isUnderWay(transaction, sourceIndexId, null)) throw isRunning(null)
    const { id: targetIndexId } = await chunkTables.create(target, transaction)
    await insertRun(transaction, {
      id,
      sourceIndexId,
      targetIndexId,
      collectionIds,
      startedBy: userId,
      sourceSpec: source,
      targetSpec: target,
      status: 'queued',
      total: await countFiles(transaction, collectionIds),
      createdAt: now(),
      updatedAt: now(),
    })
    await goOn(parts, transaction, id)
  })
  return id
}

function act(parts: Parts, id: string, action: ReindexAction): ReturnType<Reindexes['act']> {
  const { store, now } = parts
  return store.transact(async (transaction) => {
    if (!isUuid(id)) throw absent(id)
    const run = await lockRun(transaction, id)
    if (run === undefined) throw absent(id)
    await takeAction(transaction, run, { action, at: now() })
    await goOn(parts, transaction, id)
    return viewOf(transaction, await existing(transaction, id), now())
  })
}

/** Whoever drives it looks at it now; where nobody does, somebody takes it up. */
async function goOn(
  { jobs, notifier }: Parts,
  transaction: Transaction,
  id: string,
): Promise<void> {
  const payload = { reindexId: id, task: 'drive' }
  await jobs.add(transaction, { queue: driveQueue, key: id, payload })
  await notifier.notify(transaction, id)
}

async function existing(handle: Handle, id: string): Promise<Run> {
  const run = isUuid(id) ? await readRun(handle, id) : undefined
  if (run === undefined) throw absent(id)
  return run
}

function absent(id: string): AppError {
  return new AppError('not_found', `There is no reindex with the id "${id}".`, { param: 'id' })
}
