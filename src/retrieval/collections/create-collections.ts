import type { Config } from '#config/schema.ts'
import type { Embedders } from '#embedding/embedder.ts'
import type { Jobs } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import { type RequestContext, type RequestPrincipal, withSignal } from '#lib/request-context.ts'
import { sqlStateOf } from '#lib/sql-state.ts'
import type { IndexSpec } from '#retrieval/index/chunk.ts'
import { type ChunkTables, withModelErrors } from '#retrieval/index/tables.ts'
import { createRunner } from '#retrieval/sql-store.ts'
import type { ConfigValues } from '#settings/schema.ts'
import type { Collection, CollectionChange, NewCollection, PageRequest } from './collections.ts'
import { folderSyncHandler, folderSyncQueue, syncFolder } from './folder-store.ts'
import { deleteUnusedChunks, lockMembers, removeMembers, setSharer } from './member-store.ts'
import { createFileHooks, createFileMemberships, createMembers } from './members.ts'
import {
  collectionNotFound,
  requireCollectionRole,
  requireFolderRole,
  requireSharableMembers,
} from './rights-store.ts'
import {
  type CollectionDatabase,
  deleteCollection,
  insertCollection,
  listCollections,
  listVisible,
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
/** Longer than the default: adding a folder or deleting a collection changes many rows. */
const waitMaxMs = 30_000
/** How long the embedding model may take to measure its vectors. */
const probeMs = 30_000
/** Attempts to create a collection while reindexes drop its index. */
const attemptsMax = 3
const uniqueViolation = '23505'

export type Collections = ReturnType<typeof createCollections>

/**
 * The collections. Each is addressed by name or id; one that the caller may not see is `not_found`,
 * like one that does not exist. Viewers search, editors add and remove files, managers change the
 * collection, the owner deletes it. A lower role throws `permission_denied`.
 */
export function createCollections(deps: CollectionsDeps) {
  const { chunkTables, embedders, jobs, limits, settings, now } = deps
  const { query, transact } = createRunner(deps.database, waitMaxMs)
  const memberDeps = { jobs, now, transact, filesMax: limits.collectionFilesMax }
  jobs.process(folderSyncQueue, folderSyncHandler(deps.database, deps))

  const find = async (caller: RequestPrincipal, nameOrId: string): Promise<Collection> =>
    orNotFound(await query((handle) => readCollection(handle, caller, nameOrId)), nameOrId)

  /** Calls the model once to measure its vectors. */
  function indexSpecOf(
    { embeddingModel, chunking }: NewCollection,
    context: RequestContext,
  ): Promise<IndexSpec> {
    return withModelErrors(async () => {
      const embedder = await embedders.find(embeddingModel ?? settings.current().embedding_model)
      const { dims } = await embedder.embed(['dimensions'], {
        purpose: 'passage',
        context: withSignal(context, AbortSignal.timeout(probeMs)),
      })
      return {
        model: embedder.model,
        dims,
        chunkTokensMax: chunking?.tokensMax ?? limits.chunkTokensMax,
        chunkOverlapTokens: chunking?.overlapTokens ?? limits.chunkOverlapTokens,
      }
    })
  }

  async function requireUnused(name: string): Promise<void> {
    if (!(await deps.usedByAgents(name))) return
    throw new AppError(
      'conflict',
      `Agents search the collection "${name}"; change them first, or send force=true.`,
      { code: 'collection_in_use' },
    )
  }

  return {
    find,

    /** Throws `name_conflict`, `unprocessable`, and the errors of the embedding model. */
    async create(context: RequestContext, params: NewCollection): Promise<Collection> {
      const caller = context.principal
      const spec = await indexSpecOf(params, context)
      const { accessMode, folderId } = params
      const ownerId = caller.userId
      for (let attempt = 1; attempt <= attemptsMax; attempt++) {
        const index = await chunkTables.provide(spec)
        const id = Bun.randomUUIDv7()
        const row = { ...params, id, ownerId, indexId: index.id, at: now() }
        const outcome = await withNameConflict(params.name, () =>
          transact(async (transaction) => {
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
        if (outcome === 'too_many') {
          const message = `You have ${collectionsPerOwnerMax} collections, which is the limit; delete one first.`
          throw new AppError('unprocessable', message, { code: 'too_many_collections' })
        }
        if (outcome !== 'index_dropped') return orNotFound(outcome, id)
      }
      const message = 'The index of this collection is being replaced.'
      throw new AppError('service_unavailable', message, { retryAfterS: 1 })
    },

    list: (caller: RequestPrincipal, page: PageRequest) =>
      query((handle) => listCollections(handle, caller, page)),

    /** All that the caller sees, by name. */
    listVisible: (caller: RequestPrincipal) =>
      query((handle) => listVisible(handle, caller, visibleMax)),

    /**
     * Throws `collection_in_use` where agents use the present name, unless forced, and
     * `permission_denied` where it would open files that the caller may not share.
     */
    async update(
      caller: RequestPrincipal,
      nameOrId: string,
      change: CollectionChange,
      { isForced }: { isForced: boolean },
    ): Promise<Collection> {
      const seen = await find(caller, nameOrId)
      requireCollectionRole(seen, 'manager')
      const isRenamed = change.name !== undefined && change.name !== seen.name
      if (isRenamed && !isForced) await requireUnused(seen.name)
      return withNameConflict(change.name ?? seen.name, () =>
        transact(async (transaction) => {
          const known = orNotFound(await readCollection(transaction, caller, seen.id), nameOrId)
          requireCollectionRole(known, 'manager')
          const { accessMode, folderId } = { ...known, ...change }
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
          await writeCollection(transaction, known.id, {
            ...change,
            ...(isOpened || isNewFolder ? { folderSharedBy: sharedBy } : {}),
            updatedAt: now(),
          })
          return orNotFound(await readCollection(transaction, caller, known.id), nameOrId)
        }),
      )
    },

    /** Throws `collection_in_use` where agents use the name, unless forced. */
    async remove(
      caller: RequestPrincipal,
      nameOrId: string,
      { isForced }: { isForced: boolean },
    ): Promise<Collection> {
      const seen = await find(caller, nameOrId)
      requireCollectionRole(seen, 'owner')
      if (!isForced) await requireUnused(seen.name)
      await transact(async (transaction) => {
        await lockMembers(transaction, seen.id)
        if (!(await lockCollection(transaction, seen.id, 'exclusive'))) {
          throw collectionNotFound(nameOrId)
        }
        const fileIds = await removeMembers(transaction, seen.id)
        await deleteCollection(transaction, seen.id)
        await deleteUnusedChunks(transaction, fileIds)
      })
      return seen
    },

    members: createMembers(memberDeps),
    fileMemberships: createFileMemberships(memberDeps),
    /** Called by the file tree, in its transactions. */
    fileHooks: createFileHooks(memberDeps),
  }
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
