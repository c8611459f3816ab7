import { recordChange } from '#db/audit-entries.ts'
import { createChangeNotifier } from '#db/change-notifier.ts'
import type { Transaction } from '#db/client.ts'
import { AppError } from '#lib/errors.ts'
import {
  actingPrincipal,
  type RequestContext,
  type RequestPrincipal,
} from '#lib/request-context.ts'
import { refused } from '#lib/unprocessable.ts'
import { isUuid } from '#lib/uuid.ts'
import type { Page, PageRequest } from '#retrieval/collections/collections.ts'
import { findByReferences } from '#retrieval/collections/lookup-store.ts'
import { requireDims } from '#retrieval/index/tables.ts'
import { applyAction } from './actions.ts'
import { reindexQueue } from './cleanup.ts'
import { processReindexJobs } from './driver.ts'
import { countFiles, listFailures } from './file-store.ts'
import { estimateReindex, planReindex, reindexRunning } from './plan.ts'
import { probeModel } from './probe.ts'
import { type Reindex, readProgress } from './progress.ts'
import { isEnded, type ReindexAction, type ReindexParams, type ReindexStatus } from './reindex.ts'
import { findCollections } from './routing-store.ts'
import type { ReindexDeps } from './steps.ts'
import {
  findReindex,
  type Handle,
  insertReindex,
  isIndexBusy,
  listReindexes,
  lockReindex,
  lockStarts,
  type ReindexState,
  reindexStore,
} from './store.ts'

type ReindexIntervals = {
  /** Checks for processed files. */
  readonly pollMs: number
  /** Progress events. */
  readonly progressMs: number
}

const defaultIntervals: ReindexIntervals = { pollMs: 500, progressMs: 1_000 }
/** Each progress stream counts all files once per second. */
const watchersMax = 16

export type Reindexes = Awaited<ReturnType<typeof createReindexes>>

/**
 * Moves collections from a source index to a target index while they stay in use. Each file is
 * searched in the source until it is in the target. Processes the jobs of reindexes in this worker.
 * Methods with an id throw `not_found`.
 */
export async function createReindexes(deps: ReindexDeps & { intervals?: ReindexIntervals }) {
  const { database, embedders, chunkTables, jobs, now } = deps
  const { pollMs, progressMs } = deps.intervals ?? defaultIntervals
  const store = reindexStore(database)
  const notifier = await createChangeNotifier(database, 'reindex')
  let watchers = 0
  processReindexJobs({ ...deps, store, notifier, pollMs })

  const find = (id: string): Promise<Reindex> =>
    store.query(async (handle) => readProgress(handle, await requireReindex(handle, id), now()))

  /** Calls the model to check that it works. */
  async function plan(context: RequestContext, params: ReindexParams) {
    const collections = await store.query(async (handle) => {
      const ids = await idsOf(handle, context.principal, params.collections)
      return findCollections(handle, ids)
    })
    const probe = await probeModel(embedders, params.embeddingModel, context)
    const planned = planReindex(collections, params, probe)
    requireDims(planned.target)
    const isBusy = await store.query((handle) => isIndexBusy(handle, planned.sourceIndexId, null))
    if (isBusy) throw reindexRunning(null)
    return { plan: planned, probe }
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
    /**
     * Throws `unprocessable` (`model_not_found`, `model_mode_mismatch`, `too_many_dimensions`,
     * `collection_not_found`, `several_source_indexes`, `already_current`), `conflict`
     * (`reindex_running`) and `upstream_error` (`embedding_probe_failed`).
     */
    async start(context: RequestContext, params: ReindexParams): Promise<Reindex> {
      const { source, target, ...planned } = (await plan(context, params)).plan
      const id = Bun.randomUUIDv7()
      await store.transact(async (transaction) => {
        await lockStarts(transaction)
        if (await isIndexBusy(transaction, planned.sourceIndexId, null)) throw reindexRunning(null)
        const { id: targetIndexId } = await chunkTables.create(target, transaction)
        await insertReindex(transaction, {
          id,
          ...planned,
          targetIndexId,
          startedBy: context.principal.userId,
          sourceSpec: source,
          targetSpec: target,
          status: 'queued',
          total: await countFiles(transaction, planned.collectionIds),
          createdAt: now(),
          updatedAt: now(),
        })
        await wakeDriver(transaction, id)
        const after = {
          embedding_model: target.model,
          collection_ids: planned.collectionIds,
        }
        const entry = { kind: 'reindex' as const, id, action: 'start', after, at: now() }
        await recordChange(transaction, actingPrincipal(context), entry)
      })
      return find(id)
    },
    /** The expected effort. Throws like `start` and changes nothing. */
    async estimate(context: RequestContext, params: ReindexParams) {
      const { plan: planned, probe } = await plan(context, params)
      return store.query((handle) => estimateReindex(handle, planned, probe))
    },
    list: (page: PageRequest, status: ReindexStatus | null): Promise<Page<Reindex>> =>
      store.query(async (handle) => {
        const { items, hasMore } = await listReindexes(handle, page, status)
        const read = items.map((state) => readProgress(handle, state, now()))
        return { items: await Promise.all(read), hasMore }
      }),
    find,
    /** Yields the present state, then one per second and per change of status, until the end. */
    async watch(id: string, signal: AbortSignal): Promise<AsyncIterator<Reindex>> {
      if (watchers < watchersMax) return follow(await find(id), signal)
      throw new AppError(
        'too_many_streams',
        'Too many progress streams on this worker; try again later.',
        { retryAfterS: 1 },
      )
    },
    /**
     * Succeeds without effect if there is nothing to change. Throws `conflict` (`reindex_state`) if
     * the status does not allow the action, and `gone` (`source_dropped`).
     */
    act: (context: RequestContext, id: string, action: ReindexAction): Promise<Reindex> =>
      store.transact(async (transaction) => {
        const state = isUuid(id) ? await lockReindex(transaction, id) : undefined
        if (state === undefined) throw reindexNotFound(id)
        await applyAction(transaction, state, { action, at: now() })
        await wakeDriver(transaction, id)
        const changed = await requireReindex(transaction, id)
        if (changed.version !== state.version) {
          const before = { status: state.status }
          const after = { status: changed.status }
          const entry = { kind: 'reindex' as const, id, action, before, after, at: now() }
          await recordChange(transaction, actingPrincipal(context), entry)
        }
        return readProgress(transaction, changed, now())
      }),
    /** The files that could not be moved. */
    failures: (id: string, page: PageRequest) =>
      store.query(async (handle) => listFailures(handle, await requireReindex(handle, id), page)),
  }
}

/** Administrators name any collection, also one that is not shared with them. */
async function idsOf(
  handle: Handle,
  caller: RequestPrincipal,
  references: ReindexParams['collections'],
): Promise<readonly string[] | null> {
  if (references === null) return null
  const pathOf = (index: number) => `collections[${index}]`
  const found = await findByReferences(handle, { caller, references, isAll: true, pathOf })
  return found.map((collection, index) => {
    if (collection !== undefined) return collection.id
    const message = `There is no collection "${references[index]}".`
    throw refused(pathOf(index), message, 'collection_not_found')
  })
}

async function requireReindex(handle: Handle, id: string): Promise<ReindexState> {
  const state = isUuid(id) ? await findReindex(handle, id) : undefined
  if (state === undefined) throw reindexNotFound(id)
  return state
}

function reindexNotFound(id: string): AppError {
  return new AppError('not_found', `There is no reindex with the id "${id}".`, { param: 'id' })
}
