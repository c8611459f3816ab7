import type { Config } from '#config/schema.ts'
import type { Embedders } from '#embedding/embedder.ts'
import type { Jobs } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { createBackgroundContext } from '#lib/request-context.ts'
import { sqlStateOf } from '#lib/sql-state.ts'
import type { ChunkTables, IndexSpec } from '#retrieval/index/chunk.ts'
import type { ConfigValues } from '#settings/schema.ts'
import type { Collection, CollectionChange, Collections, NewCollection } from './collections.ts'
import { folderSyncHandler, folderSyncQueue, syncFolder } from './folder-store.ts'
import { deleteUnusedChunks, lockMembers, removeMembers, setSharer } from './member-store.ts'
import { createFileHooks, createFileMemberships, createMembers, pageOf } from './members.ts'
import {
  collectionNotFound,
  requireCollectionRole,
  requireFolderRole,
  requireSharableMembers,
} from './rights-store.ts'
import {
  type CollectionDatabase,
  collectionStore,
  deleteCollection,
  insertCollection,
  lockCollection,
  readCollection,
  writeCollection,
} from './store.ts'

export type CollectionsDeps = {
  database: CollectionDatabase
  chunkTables: Pick<ChunkTables, 'provide'>
  embedders: Embedders
  jobs: Pick<Jobs, 'add' | 'process'>
  settings: { current(): Pick<ConfigValues, 'embedding_model'> }
  limits: Pick<Config['retrieval'], 'chunkTokensMax' | 'chunkOverlapTokens' | 'collectionFilesMax'>
  /** Whether any agent searches the collection of this name. */
  usedByAgents(name: string): Promise<boolean>
  now: () => Date
}

/** Keeps one user from filling the table. */
const collectionsPerOwnerMax = 1_000
const visibleMax = 1_000
/** How long the embedding model may take to measure its vectors. */
const probeMs = 30_000
/** Attempts to create a collection while reindexes drop its index. */
const attemptsMax = 3
const uniqueViolation = '23505'
const deadlock = '40P01'

type Store = ReturnType<typeof collectionStore>

export function createCollections(deps: CollectionsDeps): Collections {
  const { database, jobs, limits } = deps
  const rawStore = collectionStore(database)
  const store = { ...rawStore, transact: retryDeadlocks(rawStore.transact) }
  const memberDeps = { ...deps, transact: store.transact, filesMax: limits.collectionFilesMax }
  jobs.process(folderSyncQueue, folderSyncHandler(database, deps))
  return {
    create: (caller, params) => create(deps, store, caller, params),
    find: async (caller, nameOrId) => orNotFound(await store.find(caller, nameOrId), nameOrId),
    list: async (caller, page) => pageOf(await store.list(caller, page), page),
    listVisible: (caller) => store.listVisible(caller, visibleMax),
    update: (caller, nameOrId, change, { isForced }) =>
      update(deps, store, { caller, nameOrId, change, isForced }),
    remove: (caller, nameOrId, { isForced }) => remove(deps, store, { caller, nameOrId, isForced }),
    members: createMembers(memberDeps),
    fileMemberships: createFileMemberships(memberDeps),
    fileHooks: createFileHooks(memberDeps),
  }
}

/** Changes of many files and of one file can deadlock; the database aborts one of the two. */
function retryDeadlocks(transact: Store['transact']): Store['transact'] {
  return (work) =>
    transact(work).catch((error: unknown) => {
      if (sqlStateOf(error) === deadlock) return transact(work)
      throw error
    })
}

async function create(
  deps: CollectionsDeps,
  store: Store,
  caller: RequestPrincipal,
  params: NewCollection,
): Promise<Collection> {
  const spec = await indexSpecOf(deps, params)
  const { accessMode, folderId } = params
  const ownerId = caller.userId
  for (let attempt = 1; ; attempt++) {
    const index = await deps.chunkTables.provide(spec)
    const id = Bun.randomUUIDv7()
    const row = { ...params, id, ownerId, indexId: index.id, at: deps.now() }
    const outcome = await withNameConflict(params.name, () =>
      store.transact(async (transaction) => {
        if (folderId !== null) {
          await requireFolderRole(transaction, caller, { folderId, accessMode })
        }
        const inserted = await insertCollection(transaction, row, collectionsPerOwnerMax)
        if (inserted !== 'added') return inserted
        if (folderId !== null) {
          await syncFolder(transaction, { collectionId: id, folderId, sharedBy: ownerId }, deps)
        }
        return readCollection(transaction, caller, id)
      }),
    )
    if (outcome === 'too_many') throw tooManyCollections()
    if (outcome !== 'index_dropped') return orNotFound(outcome, id)
    if (attempt === attemptsMax) {
      const message = 'The index of this collection is being replaced.'
      throw new AppError('service_unavailable', message, { retryAfterS: 1 })
    }
  }
}

/** Calls the model once to measure its vectors. */
async function indexSpecOf(
  { embedders, settings, limits }: CollectionsDeps,
  { embeddingModel, chunking }: NewCollection,
): Promise<IndexSpec> {
  const model = embeddingModel ?? settings.current().embedding_model
  try {
    const embedder = await embedders.find(model)
    const signal = AbortSignal.timeout(probeMs)
    const { dims } = await embedder.embed(['dimensions'], {
      purpose: 'passage',
      context: createBackgroundContext(signal),
    })
    return {
      model: embedder.model,
      dims,
      chunkTokensMax: chunking?.tokensMax ?? limits.chunkTokensMax,
      chunkOverlapTokens: chunking?.overlapTokens ?? limits.chunkOverlapTokens,
    }
  } catch (error) {
    const isWrongModel =
      error instanceof AppError && /^model_(not_found|mode_mismatch)$/.test(error.kind)
    if (!isWrongModel) throw error
    const options = { param: 'embedding_model', code: error.kind }
    throw new AppError('unprocessable', error.message, options)
  }
}

async function update(
  deps: CollectionsDeps,
  store: Store,
  params: {
    caller: RequestPrincipal
    nameOrId: string
    change: CollectionChange
    isForced: boolean
  },
): Promise<Collection> {
  const { caller, nameOrId, change, isForced } = params
  const seen = orNotFound(await store.find(caller, nameOrId), nameOrId)
  requireCollectionRole(seen, 'manager')
  const isRenamed = change.name !== undefined && change.name !== seen.name
  if (isRenamed && !isForced) await requireUnused(deps, seen.name)
  return withNameConflict(change.name ?? seen.name, () =>
    store.transact(async (transaction) => {
      const known = orNotFound(await readCollection(transaction, caller, seen.id), nameOrId)
      requireCollectionRole(known, 'manager')
      const changed = { ...known, ...change, at: deps.now() }
      const { accessMode, folderId } = changed
      const isOpened = accessMode === 'collection' && known.accessMode === 'files'
      const isNewFolder = folderId !== known.folderId
      const sharedBy = caller.userId
      if (folderId !== null && (isOpened || isNewFolder)) {
        await requireFolderRole(transaction, caller, { folderId, accessMode })
      }
      if (isOpened) {
        // Keeps others from adding files between the check and the change.
        await lockCollection(transaction, known.id, 'exclusive')
        await requireSharableMembers(transaction, caller, known.id)
        await setSharer(transaction, known.id, sharedBy)
      }
      if (isNewFolder) {
        await syncFolder(transaction, { collectionId: known.id, folderId, sharedBy }, deps)
      }
      const folderSharedBy = isOpened || isNewFolder ? sharedBy : null
      await writeCollection(transaction, known.id, { ...changed, folderSharedBy })
      return orNotFound(await readCollection(transaction, caller, known.id), nameOrId)
    }),
  )
}

async function remove(
  deps: CollectionsDeps,
  store: Store,
  params: { caller: RequestPrincipal; nameOrId: string; isForced: boolean },
): Promise<Collection> {
  const { caller, nameOrId, isForced } = params
  const seen = orNotFound(await store.find(caller, nameOrId), nameOrId)
  requireCollectionRole(seen, 'owner')
  if (!isForced) await requireUnused(deps, seen.name)
  await store.transact(async (transaction) => {
    await lockMembers(transaction, seen.id)
    if (!(await lockCollection(transaction, seen.id, 'exclusive'))) {
      throw collectionNotFound(nameOrId)
    }
    const fileIds = await removeMembers(transaction, seen.id)
    await deleteCollection(transaction, seen.id)
    await deleteUnusedChunks(transaction, fileIds)
  })
  return seen
}

async function requireUnused(deps: CollectionsDeps, name: string): Promise<void> {
  if (!(await deps.usedByAgents(name))) return
  throw new AppError(
    'conflict',
    `Agents search the collection "${name}"; change them first, or send force=true.`,
    { code: 'collection_in_use' },
  )
}

async function withNameConflict<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (sqlStateOf(error) !== uniqueViolation) throw error
    const message = `There is a collection "${name}" already.`
    throw new AppError('conflict', message, { param: 'name', code: 'name_conflict' })
  }
}

function orNotFound(found: Collection | undefined, nameOrId: string): Collection {
  if (found === undefined) throw collectionNotFound(nameOrId)
  return found
}

function tooManyCollections(): AppError {
  return new AppError(
    'unprocessable',
    `You have ${collectionsPerOwnerMax} collections, which is the limit; delete one first.`,
    { code: 'too_many_collections' },
  )
}
