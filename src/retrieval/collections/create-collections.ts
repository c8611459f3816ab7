import type { Config } from '#config/schema.ts'
import { recordChange } from '#db/audit-entries.ts'
import type { Transaction } from '#db/client.ts'
import type { Embedders } from '#embedding/embedder.ts'
import type { Jobs } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import {
  actingPrincipal,
  type RequestContext,
  type RequestPrincipal,
  withoutKey,
  withSignal,
} from '#lib/request-context.ts'
import { sqlStateOf } from '#lib/sql-state.ts'
import type { IndexSpec } from '#retrieval/index/chunk.ts'
import { indexSpecFor } from '#retrieval/index/parts.ts'
import { type ChunkTables, withModelErrors } from '#retrieval/index/tables.ts'
import { createRunner } from '#retrieval/sql-store.ts'
import type { ConfigValues } from '#settings/schema.ts'
import { auditedFields } from './audited-fields.ts'
import type { Collection, CollectionChange, NewCollection, PageRequest } from './collections.ts'
import { folderSyncHandler, folderSyncQueue, syncFolder } from './folder-store.ts'
import { findAccess, findByReferences, readNames } from './lookup-store.ts'
import { deleteUnusedChunks, lockMembers, removeMembers, setSharer } from './member-store.ts'
import { createFileHooks, createFileMemberships, createMembers, replaceMembers } from './members.ts'
import {
  collectionNotFound,
  requireCollectionRole,
  requireFolderRole,
  requireSharableMembers,
} from './rights-store.ts'
import {
  type CollectionDatabase,
  closeExpired,
  deleteCollection,
  findExpired,
  insertCollection,
  listCollections,
  lockCollection,
  readCollection,
  shareWithEveryone,
  writeCollection,
} from './store.ts'

export type CollectionsDeps = {
  database: CollectionDatabase
  chunkTables: Pick<ChunkTables, 'provide'>
  embedders: Embedders
  jobs: Pick<Jobs, 'add' | 'process'>
  settings: { current(): Pick<ConfigValues, 'embedding_model'> }
  limits: Pick<Config['retrieval'], 'chunkTokensMax' | 'chunkOverlapTokens' | 'collectionFilesMax'>
  /** Whether any agent searches the collection with this id. */
  usedByAgents(id: string): Promise<boolean>
  now: () => Date
}

/** Keeps one user from filling the table. */
const collectionsPerOwnerMax = 1_000
/** Longer than the default: adding a folder or deleting a collection changes many rows. */
const waitMaxMs = 30_000
/** How long the embedding model may take to measure its vectors. */
const probeMs = 30_000
/** Attempts to create a collection while reindexes drop its index. */
const attemptsMax = 3
const uniqueViolation = '23505'
/** The rest waits for the next sweep. */
const expiredPerSweep = 100

export type Collections = ReturnType<typeof createCollections>

/**
 * The collections. Each is addressed by a reference (see `lookup-store.ts`); one that the caller may
 * not see is `not_found`, like one that does not exist. Viewers search, editors add and remove files, managers change the
 * collection, the owner deletes it. A lower role throws `permission_denied`.
 */
export function createCollections(deps: CollectionsDeps) {
  const { chunkTables, embedders, jobs, limits, settings, now } = deps
  const { query, transact } = createRunner(deps.database, waitMaxMs)
  const memberDeps = { jobs, now, transact, filesMax: limits.collectionFilesMax }
  jobs.process(folderSyncQueue, folderSyncHandler(deps.database, deps))

  const find = async (caller: RequestPrincipal, reference: string): Promise<Collection> =>
    orNotFound(await query((handle) => readCollection(handle, caller, reference)), reference)

  /** Calls the model once to measure its vectors. */
  function indexSpecOf(
    { embeddingModel, chunking }: NewCollection,
    context: RequestContext,
  ): Promise<IndexSpec> {
    return withModelErrors(async () => {
      const name = embeddingModel ?? settings.current().embedding_model
      const principal = embeddingModel === null ? withoutKey(context.principal) : context.principal
      const embedder = await embedders.find(name, principal)
      const { dims } = await embedder.embed(['dimensions'], {
        purpose: 'passage',
        context: withSignal(context, AbortSignal.timeout(probeMs)),
      })
      const { model, passageTokensMax } = embedder
      return indexSpecFor({ model, dims, passageTokensMax }, chunking, limits)
    })
  }

  async function requireUnused({ id, name }: Collection): Promise<void> {
    if (!(await deps.usedByAgents(id))) return
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
            const { name } = params
            const after = { name, access_mode: accessMode, folder_id: folderId }
            const entry = { kind: 'collection' as const, id, action: 'create', after, at: now() }
            await recordChange(transaction, actingPrincipal(context), entry)
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

    /** The collection of each reference that the caller sees; throws for an ambiguous name. */
    resolve: (
      caller: RequestPrincipal,
      references: readonly string[],
      pathOf: (index: number) => string,
    ) => query((handle) => findByReferences(handle, { caller, references, pathOf })),

    /** The names of those that the caller sees, by id. */
    namesOf: (caller: RequestPrincipal, ids: readonly string[]) =>
      query((handle) => readNames(handle, caller, ids)),

    /**
     * Only the owner renames it, since the name is one of theirs. Throws `permission_denied` where it
     * would open files that the caller may not share.
     */
    async update(
      caller: RequestPrincipal,
      reference: string,
      change: CollectionChange,
    ): Promise<Collection> {
      const seen = await find(caller, reference)
      const isRenamed = change.name !== undefined && change.name !== seen.name
      requireCollectionRole(seen, isRenamed ? 'owner' : 'manager')
      return withNameConflict(change.name ?? seen.name, () =>
        transact(async (transaction) => {
          const known = orNotFound(await readCollection(transaction, caller, seen.id), reference)
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
          await recordChange(transaction, caller, {
            kind: 'collection',
            id: known.id,
            action: 'update',
            before: auditedFields(known, change),
            after: auditedFields({ ...known, ...change }, change),
            at: now(),
          })
          return orNotFound(await readCollection(transaction, caller, known.id), reference)
        }),
      )
    },

    /** Throws `collection_in_use` where agents search it, unless forced. */
    async remove(
      caller: RequestPrincipal,
      reference: string,
      { isForced }: { isForced: boolean },
    ): Promise<Collection> {
      const seen = await find(caller, reference)
      requireCollectionRole(seen, 'owner')
      if (!isForced) await requireUnused(seen)
      await transact(async (transaction) => {
        await lockMembers(transaction, seen.id)
        if (!(await lockCollection(transaction, seen.id, 'exclusive'))) {
          throw collectionNotFound(reference)
        }
        const fileIds = await removeMembers(transaction, seen.id)
        await deleteCollection(transaction, seen.id)
        await deleteUnusedChunks(transaction, fileIds)
        const { id, name, accessMode } = seen
        const before = { name, access_mode: accessMode, files: fileIds.length }
        const entry = { kind: 'collection' as const, id, action: 'delete', before, at: now() }
        await recordChange(transaction, caller, entry)
      })
      return seen
    },

    /**
     * Makes the files the members of a collection that the program owns, which everyone may search
     * while it has any. Returns its id, or undefined if it does not exist.
     */
    async publish(
      transaction: Transaction,
      {
        owner,
        name,
        ...members
      }: {
        owner: RequestPrincipal
        name: string
        sharedBy: RequestPrincipal
        fileIds: readonly string[]
      },
    ): Promise<string | undefined> {
      const known = await findAccess(transaction, owner, name)
      if (known === undefined) return undefined
      await replaceMembers(transaction, memberDeps, { collectionId: known.id, ...members })
      const isShared = members.fileIds.length > 0
      await shareWithEveryone(transaction, known.id, { isShared, by: owner.userId, at: now() })
      return known.id
    },

    /** Removes the files of expired collections. */
    async expire(): Promise<void> {
      for (const id of await query((handle) => findExpired(handle, expiredPerSweep))) {
        await transact(async (transaction) => {
          await lockMembers(transaction, id)
          if (!(await closeExpired(transaction, id))) return
          await deleteUnusedChunks(transaction, await removeMembers(transaction, id))
        })
      }
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
    const message = `You have a collection "${name}" already.`
    throw new AppError('conflict', message, { param: 'name', code: 'name_conflict' })
  }
}

function orNotFound(found: Collection | undefined, reference: string): Collection {
  if (found === undefined) throw collectionNotFound(reference)
  return found
}
