import type { Config } from '#config/schema.ts'
import { createChangeNotifier } from '#db/change-notifier.ts'
import type { Embedders } from '#embedding/embedder.ts'
import type { Jobs, Transaction } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import { isUuid } from '#lib/uuid.ts'
import { pageOf } from '#retrieval/collections/members.ts'
import type { ChunkTables } from '#retrieval/index/chunk.ts'
import { requireDims } from '#retrieval/index/tables.ts'
import type { Log } from '#telemetry/log.ts'
import { applyAction } from './actions.ts'
import { reindexQueue } from './cleanup.ts'
import { processReindexJobs, type ReindexIngest } from './driver.ts'
import { countFiles, listFailures } from './file-store.ts'
import { estimateReindex, planReindex, type ReindexPlan, reindexRunning } from './plan.ts'
import { type ModelProbe, probeModel } from './probe.ts'
import { readReindex } from './progress.ts'
import { isEnded, type Reindex, type Reindexes, type ReindexParams } from './reindex.ts'
import { findCollections } from './routing-store.ts'
import {
  findReindex,
  type Handle,
  insertReindex,
  isIndexBusy,
  lockReindex,
  lockStarts,
  type ReindexDatabase,
  type ReindexState,
  reindexStore,
} from './store.ts'

export type ReindexDeps = {
  database: ReindexDatabase
  jobs: Pick<Jobs, 'add' | 'process'>
  embedders: Embedders
  chunkTables: Pick<ChunkTables, 'create' | 'drop'>
  ingest: ReindexIngest
  settings: Pick<Config['retrieval'], 'warmHours'>
  log: Pick<Log, 'warn'>
  now: () => Date
  intervals?: Partial<ReindexIntervals>
}

type ReindexIntervals = {
  /** Checks for processed files. */
  readonly pollMs: number
  /** Progress events. */
  readonly progressMs: number
}

const defaultIntervals: ReindexIntervals = { pollMs: 500, progressMs: 1_000 }
/** Each progress stream counts all files once per second. */
const watchersMax = 16

/** Manages reindexes, and processes their jobs in this worker. */
export async function createReindexes(deps: ReindexDeps): Promise<Reindexes> {
  const { database, embedders, chunkTables, jobs, now } = deps
  const { pollMs, progressMs } = { ...defaultIntervals, ...deps.intervals }
  const store = reindexStore(database)
  const notifier = await createChangeNotifier(database, 'reindex')
  let watchers = 0
  processReindexJobs({ ...deps, store, notifier, pollMs })

  const find: Reindexes['find'] = (id) =>
    store.query(async (handle) => readReindex(handle, await requireReindex(handle, id), now()))

  /** Calls the model to check that it works. */
  async function plan(
    params: ReindexParams,
    signal: AbortSignal,
  ): Promise<{ plan: ReindexPlan; probe: ModelProbe }> {
    const collections = await store.query((handle) => findCollections(handle, params.collections))
    const probe = await probeModel(embedders, params.embeddingModel, signal)
    const planned = planReindex(collections, params, probe)
    requireDims(planned.target)
    const isBusy = await store.query((handle) => isIndexBusy(handle, planned.sourceIndexId, null))
    if (isBusy) throw reindexRunning(null)
    return { plan: planned, probe }
  }

  async function start(userId: string, { source, target, ...planned }: ReindexPlan) {
    const id = Bun.randomUUIDv7()
    await store.transact(async (transaction) => {
      await lockStarts(transaction)
      if (await isIndexBusy(transaction, planned.sourceIndexId, null)) throw reindexRunning(null)
      const { id: targetIndexId } = await chunkTables.create(target, transaction)
      await insertReindex(transaction, {
        id,
        ...planned,
        targetIndexId,
        startedBy: userId,
        sourceSpec: source,
        targetSpec: target,
        status: 'queued',
        total: await countFiles(transaction, planned.collectionIds),
        createdAt: now(),
        updatedAt: now(),
      })
      await wakeDriver(transaction, id)
    })
    return id
  }

  /** Wakes the driver, or starts one. */
  async function wakeDriver(transaction: Transaction, id: string): Promise<void> {
    const payload = { reindexId: id, task: 'drive' }
    await jobs.add(transaction, { queue: reindexQueue, key: id, payload })
    await notifier.notify(transaction, id)
  }

  async function* follow(first: Reindex, signal: AbortSignal): AsyncGenerator<Reindex, void, void> {
    watchers += 1
    try {
      for (let reindex = first; ; reindex = await find(first.id)) {
        yield reindex
        if (isEnded(reindex.status)) return
        await notifier.wait(first.id, progressMs, signal)
        if (signal.aborted) return
      }
    } finally {
      watchers -= 1
    }
  }

  return {
    start: async (userId, params, signal) =>
      find(await start(userId, (await plan(params, signal)).plan)),
    async estimate(params, signal) {
      const { plan: planned, probe } = await plan(params, signal)
      return store.query((handle) => estimateReindex(handle, planned, probe))
    },
    async list(page, status) {
      const { items, hasMore } = pageOf(await store.list(page, status), page)
      const reindexes = await store.query((handle) =>
        Promise.all(items.map((state) => readReindex(handle, state, now()))),
      )
      return { items: reindexes, hasMore }
    },
    find,
    async watch(id, signal) {
      if (watchers < watchersMax) return follow(await find(id), signal)
      throw new AppError(
        'too_many_streams',
        'Too many progress streams on this worker; try again later.',
        { retryAfterS: 1 },
      )
    },
    act: (id, action) =>
      store.transact(async (transaction) => {
        const state = isUuid(id) ? await lockReindex(transaction, id) : undefined
        if (state === undefined) throw reindexNotFound(id)
        await applyAction(transaction, state, { action, at: now() })
        await wakeDriver(transaction, id)
        return readReindex(transaction, await requireReindex(transaction, id), now())
      }),
    failures: (id, page) =>
      store.query(async (handle) =>
        pageOf(await listFailures(handle, await requireReindex(handle, id), page), page),
      ),
  }
}

async function requireReindex(handle: Handle, id: string): Promise<ReindexState> {
  const state = isUuid(id) ? await findReindex(handle, id) : undefined
  if (state === undefined) throw reindexNotFound(id)
  return state
}

function reindexNotFound(id: string): AppError {
  return new AppError('not_found', `There is no reindex with the id "${id}".`, { param: 'id' })
}
