import type { Config } from '#config/schema.ts'
import type { Embedders } from '#embedding/embedder.ts'
import type { Jobs, Transaction } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { sqlStateOf } from '#lib/sql-state.ts'
import type { ChunkTables, IndexSpec } from '#retrieval/index/chunk.ts'
import type { RetrievalSettings } from '#retrieval/settings.ts'
import type { Collection, CollectionChange, Collections, NewCollection } from './collections.ts'
import { createFileHooks, createFileMemberships, createMembers, pageOf } from './create-members.ts'
import { dropUnwanted, lockMembers, removeAllMembers, shareMembers } from './member-store.ts'
import { absentCollection, demandFolder, demandRole, demandToOpen } from './rights-store.ts'
import {
  type CollectionDatabase,
  collectionStore,
  deleteCollection,
  insertCollection,
  lockCollection,
  readCollection,
  writeCollection,
} from './store.ts'
import { followFolder, followQueue, followWorker } from './sync-store.ts'

export type CollectionsDeps = {
  database: CollectionDatabase
  chunkTables: Pick<ChunkTables, 'provide'>
  embedders: Embedders
  jobs: Pick<Jobs, 'add' | 'process'>
  settings: RetrievalSettings
  limits: Pick<Config['retrieval'], 'chunkTokensMax' | 'chunkOverlapTokens' | 'collectionFilesMax'>
  /** Whether an agent searches the collection of this name, whoever made the agent. */
  usedByAgents(name: string): Promise<boolean>
  now: () => Date
}

/** Enough for a person and their programs; one caller cannot fill the table. */
const collectionsPerOwnerMax = 1_000
const visibleMax = 1_000
/** How long a model may take to show what its vectors are like. */
const probeMs = 30_000
/** An index may come to the end of its use while a collection is made on it. */
const attemptsMax = 3
const uniqueViolation = '23505'
const deadlock = '40P01'

type Store = ReturnType<typeof collectionStore>

export function createCollections(deps: CollectionsDeps): Collections {
  const { database, jobs, limits } = deps
  const asked = collectionStore(database)
  const store = { ...asked, transact: withSecondTry(asked.transact) }
  const memberDeps = { ...deps, transact: store.transact, filesMax: limits.collectionFilesMax }
  jobs.process(followQueue, followWorker(database, deps))
  return {
    create: (caller, wish) => create(deps, store, { caller, wish }),
    async find(caller, named) {
      return orAbsent(await store.find(caller, named), named)
    },
    async list(caller, page) {
      return pageOf(await store.list(caller, page), page)
    },
    visible: (caller) => store.visible(caller, visibleMax),
    update: (caller, named, change, { isForced }) =>
      update(deps, store, { caller, named, change, isForced }),
    remove: (caller, named, { isForced }) => remove(deps, store, { caller, named, isForced }),
    members: createMembers(memberDeps),
    fileMemberships: createFileMemberships(memberDeps),
    fileHooks: createFileHooks(memberDeps),
  }
}

/** Who changes many files and who changes one may wait for each other; the database ends one. */
function withSecondTry(transact: Store['transact']): Store['transact'] {
  return (work) =>
    transact(work).catch((error: unknown) => {
      if (sqlStateOf(error) === deadlock) return transact(work)
      throw error
    })
}

async function create(
  deps: CollectionsDeps,
  store: Store,
  { caller, wish }: { caller: RequestPrincipal; wish: NewCollection },
): Promise<Collection> {
  const spec = await specOf(deps, wish)
  const { accessMode, folderId } = wish
  for (let attempt = 1; ; attempt++) {
    const index = await deps.chunkTables.provide(spec)
    const id = Bun.randomUUIDv7()
    const row = { ...wish, id, ownerId: caller.userId, indexId: index.id, at: deps.now() }
    const outcome = await named(wish.name, () =>
      store.transact(async (transaction) => {
        if (folderId !== null) await demandFolder(transaction, caller, { folderId, accessMode })
        const inserted = await insertCollection(transaction, row, collectionsPerOwnerMax)
        if (inserted !== 'added') return inserted
        if (folderId !== null) {
          const sharedBy = caller.userId
          await followFolder(transaction, { collectionId: id, folderId, sharedBy }, deps)
        }
        return readCollection(transaction, caller, id)
      }),
    )
    if (outcome === 'too many') throw tooMany()
    if (outcome !== 'index is gone') return orAbsent(outcome, id)
    if (attempt === attemptsMax) {
      const sentence = 'What this collection would be searched by is changing just now.'
      throw new AppError('service_unavailable', sentence, { retryAfterS: 1 })
    }
  }
}

/** The model itself says how long its vectors are. */
async function specOf(
  { embedders, settings, limits }: CollectionsDeps,
  { embeddingModel, chunking }: NewCollection,
): Promise<IndexSpec> {
  const model = embeddingModel ?? settings().embeddingModel
  try {
    const embedder = await embedders.find(model)
    const signal = AbortSignal.timeout(probeMs)
    const { dims } = await embedder.embed(['dimensions'], { purpose: 'passage', signal })
    return {
      model: embedder.model,
      dims,
      chunkTokensMax: chunking?.tokensMax ?? limits.chunkTokensMax,
      chunkOverlapTokens: chunking?.overlapTokens ?? limits.chunkOverlapTokens,
    }
  } catch (error) {
    const isName = error instanceof AppError && /^model_(not_found|mode_mismatch)$/.test(error.kind)
    if (!isName) throw error
    const param = { param: 'embedding_model', code: error.kind }
    throw new AppError('unprocessable', error.message, param)
  }
}

async function update(
  deps: CollectionsDeps,
  store: Store,
  asked: { caller: RequestPrincipal; named: string; change: CollectionChange; isForced: boolean },
): Promise<Collection> {
  const { caller, change, isForced } = asked
  const seen = orAbsent(await store.find(caller, asked.named), asked.named)
  demandRole(seen, 'manager')
  const isRenamed = change.name !== undefined && change.name !== seen.name
  if (isRenamed && !isForced) await demandUnused(deps, seen.name)
  return named(change.name ?? seen.name, () =>
    store.transact(async (transaction) => {
      const known = orAbsent(await readCollection(transaction, caller, seen.id), asked.named)
      demandRole(known, 'manager')
      const changed = { ...known, ...change, at: deps.now() }
      const { isOpened } = await demandChange(transaction, caller, { known, changed })
      const { folderId } = changed
      const sharedBy = caller.userId
      if (isOpened) await shareMembers(transaction, known.id, sharedBy)
      const isNewFolder = folderId !== known.folderId
      if (isNewFolder) {
        await followFolder(transaction, { collectionId: known.id, folderId, sharedBy }, deps)
      }
      const folderSharedBy = isOpened || isNewFolder ? sharedBy : null
      await writeCollection(transaction, known.id, { ...changed, folderSharedBy })
      return orAbsent(await readCollection(transaction, caller, known.id), asked.named)
    }),
  )
}

type Openness = Pick<Collection, 'accessMode' | 'folderId'>

async function demandChange(
  transaction: Transaction,
  caller: RequestPrincipal,
  { known, changed }: { known: Openness & { id: string }; changed: Openness },
): Promise<{ isOpened: boolean }> {
  const { accessMode, folderId } = changed
  const isOpened = accessMode === 'collection' && known.accessMode === 'files'
  if (folderId !== null && (isOpened || folderId !== known.folderId)) {
    await demandFolder(transaction, caller, { folderId, accessMode })
  }
  if (!isOpened) return { isOpened }
  // Nobody may add what the caller could not share, between this look and the change.
  await lockCollection(transaction, known.id, 'alone')
  await demandToOpen(transaction, caller, known.id)
  return { isOpened }
}

async function remove(
  deps: CollectionsDeps,
  store: Store,
  asked: { caller: RequestPrincipal; named: string; isForced: boolean },
): Promise<Collection> {
  const seen = orAbsent(await store.find(asked.caller, asked.named), asked.named)
  demandRole(seen, 'owner')
  if (!asked.isForced) await demandUnused(deps, seen.name)
  await store.transact(async (transaction) => {
    await lockMembers(transaction, seen.id)
    if (!(await lockCollection(transaction, seen.id, 'alone'))) throw absentCollection(asked.named)
    const fileIds = await removeAllMembers(transaction, seen.id)
    await deleteCollection(transaction, seen.id)
    await dropUnwanted(transaction, fileIds)
  })
  return seen
}

async function demandUnused(deps: CollectionsDeps, name: string): Promise<void> {
  if (!(await deps.usedByAgents(name))) return
  throw new AppError(
    'conflict',
    `Agents search the collection "${name}"; change them first, or send force=true.`,
    { code: 'collection_in_use' },
  )
}

/** Tells that a name is taken. */
async function named<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (sqlStateOf(error) !== uniqueViolation) throw error
    const sentence = `There is a collection "${name}" already.`
    throw new AppError('conflict', sentence, { param: 'name', code: 'name_conflict' })
  }
}

function orAbsent(found: Collection | undefined, named: string): Collection {
  if (found === undefined) throw absentCollection(named)
  return found
}

function tooMany(): AppError {
  return new AppError(
    'unprocessable',
    `You have ${collectionsPerOwnerMax} collections, which is the limit; delete one first.`,
    { code: 'too_many_collections' },
  )
}
