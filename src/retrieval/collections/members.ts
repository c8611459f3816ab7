import { recordChange } from '#db/audit-entries.ts'
import type { Transaction } from '#db/client.ts'
import type { Attributes, FileChange, FileHooks, Role } from '#files/files.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { refused } from '#lib/unprocessable.ts'
import { isUuid } from '#lib/uuid.ts'
import type { Member, MemberFilter, NewMember, Page, PageRequest } from './collections.ts'
import { syncMovedFiles } from './folder-store.ts'
import { type CollectionAccess, findAccess } from './lookup-store.ts'
import {
  countMembers,
  findMembers,
  listMembers,
  listMemberships,
  lockMembership,
  readMemberIds,
} from './member-read-store.ts'
import {
  addMembers,
  deleteUnusedChunks,
  exceedsFilesMax,
  excludeFile,
  type IngestQueue,
  lockFiles,
  queueChangedFiles,
  removeMembers,
  setMemberAttributes,
} from './member-store.ts'
import {
  collectionExpired,
  collectionNotFound,
  fileNotFound,
  requireCollectionRole,
  requireFileManager,
  requireFileRoles,
} from './rights-store.ts'
import { type Handle, lockCollection, touchCollections } from './store.ts'

export type MembersDeps = IngestQueue & {
  transact: <T>(work: (transaction: Transaction) => Promise<T>) => Promise<T>
  filesMax: number
}

const membershipsMax = 1_000

/** The members of a collection that the caller may see: see `AccessMode`. */
export function createMembers(deps: MembersDeps) {
  /** Runs `work` with a collection on which the caller has the role. */
  const within = <T>(
    caller: RequestPrincipal,
    reference: string,
    role: Role,
    work: (transaction: Transaction, collection: CollectionAccess) => Promise<T>,
  ): Promise<T> =>
    deps.transact(async (transaction) =>
      work(transaction, await requireAccess(transaction, caller, reference, role)),
    )
  return {
    /**
     * Existing members stay. Throws `not_found` for a file that the caller may not read, and
     * `permission_denied` for one that the collection would open and the caller may not share.
     */
    add: (
      caller: RequestPrincipal,
      reference: string,
      files: readonly NewMember[],
      batchId: string | null,
    ): Promise<readonly Member[]> =>
      deps.transact((transaction) => add(transaction, deps, { caller, reference, files, batchId })),
    list: (
      caller: RequestPrincipal,
      reference: string,
      { page, filter }: { page: PageRequest; filter: MemberFilter },
    ): Promise<Page<Member>> =>
      within(caller, reference, 'viewer', (transaction, collection) =>
        listMembers(transaction, caller, { collection, page, filter }),
      ),
    count: (caller: RequestPrincipal, reference: string, filter: MemberFilter) =>
      within(caller, reference, 'viewer', (transaction, collection) =>
        countMembers(transaction, caller, { collection, filter }),
      ),
    find: (caller: RequestPrincipal, reference: string, fileId: string) =>
      within(caller, reference, 'viewer', (transaction, collection) =>
        requireMember(transaction, caller, { collection, fileId }),
      ),
    /** `change` receives the attributes of the membership only. */
    setAttributes: (
      caller: RequestPrincipal,
      reference: string,
      fileId: string,
      change: (own: Attributes) => Attributes,
    ) =>
      within(caller, reference, 'editor', async (transaction, collection) => {
        await requireMember(transaction, caller, { collection, fileId })
        const collectionId = collection.id
        const own = await lockMembership(transaction, collectionId, fileId)
        if (own === undefined) throw fileNotFound(fileId)
        const attributes = change(own.attributes)
        await setMemberAttributes(transaction, { collectionId, fileId }, attributes)
        await recordChange(transaction, caller, {
          kind: 'collection',
          id: collectionId,
          action: 'file.update',
          before: { file_id: fileId, attributes: own.attributes },
          after: { file_id: fileId, attributes },
          at: deps.now(),
        })
        return requireMember(transaction, caller, { collection, fileId })
      }),
    /** Throws `file_followed` for a member because of the collection's folder. */
    remove: (caller: RequestPrincipal, reference: string, fileId: string) =>
      within(caller, reference, 'editor', async (transaction, collection) => {
        const member = await requireMember(transaction, caller, { collection, fileId })
        if (member.isFromFolder) {
          throw new AppError(
            'conflict',
            "This file is a member because of the collection's folder; move the file, or change the folder.",
            { code: 'file_followed' },
          )
        }
        await removeMember(transaction, collection.id, fileId)
        await auditRemoval(transaction, caller, { id: collection.id, fileId, at: deps.now() })
      }),
  }
}

/**
 * The memberships of one file. Both methods need the role `manager` on the file, and no role on the
 * collection: `not_found` for a file that the caller may not read, else `permission_denied`.
 */
export function createFileMemberships({ transact, now }: MembersDeps) {
  return {
    /** The first 1,000, by the id of the collection. */
    list: (caller: RequestPrincipal, fileId: string) =>
      transact(async (transaction) => {
        await requireFileManager(transaction, caller, fileId)
        return listMemberships(transaction, fileId, membershipsMax)
      }),
    /** A file removed from a folder's collection stays out until it is added directly. */
    remove: (caller: RequestPrincipal, fileId: string, collectionId: string) =>
      transact(async (transaction) => {
        await requireFileManager(transaction, caller, fileId)
        if (!isUuid(collectionId)) throw collectionNotFound(collectionId, 'collection_id')
        await lockFiles(transaction, [fileId])
        const membership = await lockMembership(transaction, collectionId, fileId)
        if (membership === undefined) throw collectionNotFound(collectionId, 'collection_id')
        if (membership.isFromFolder) {
          const row = { collectionId, fileId, excludedBy: caller.userId, createdAt: now() }
          await excludeFile(transaction, row)
        }
        await removeMember(transaction, collectionId, fileId)
        await auditRemoval(transaction, caller, { id: collectionId, fileId, at: now() })
      }),
  }
}

export function createFileHooks(deps: MembersDeps): FileHooks {
  return {
    changed: (transaction, change) => onFilesChanged(transaction, change, deps),
    async joinCollections(transaction, caller, fileId, collections) {
      const files = [{ fileId, attributes: null }]
      for (const [index, reference] of collections.entries()) {
        const added = add(transaction, deps, { caller, reference, files, batchId: null })
        await added.catch((error: unknown) => {
          if (!(error instanceof AppError)) throw error
          const isAmbiguous = error.wireCode === 'ambiguous_name'
          if (error.kind !== 'not_found' && !isAmbiguous) throw error
          const code = isAmbiguous ? error.wireCode : 'collection_not_found'
          throw refused(`collections[${index}]`, error.message, code)
        })
      }
    },
  }
}

async function add(
  transaction: Transaction,
  deps: MembersDeps,
  params: {
    readonly caller: RequestPrincipal
    readonly reference: string
    readonly files: readonly NewMember[]
    readonly batchId: string | null
  },
): Promise<readonly Member[]> {
  const { caller, reference, batchId } = params
  // The last mention of a file counts.
  const files = [...new Map(params.files.map((file) => [file.fileId.toLowerCase(), file])).values()]
  const fileIds = files.map(({ fileId }) => fileId)
  const malformed = fileIds.find((id) => !isUuid(id))
  if (malformed !== undefined) throw fileNotFound(malformed)
  const { id: collectionId } = await requireAccess(transaction, caller, reference, 'editor')
  await lockFiles(transaction, fileIds)
  if (!(await lockCollection(transaction, collectionId, 'shared'))) {
    throw collectionNotFound(reference)
  }
  // The access mode may have changed before the lock.
  const collection = await requireAccess(transaction, caller, collectionId, 'editor')
  if (collection.isExpired) throw collectionExpired(collection.name)
  await requireFileRoles(transaction, caller, { fileIds, accessMode: collection.accessMode })
  const addedBy = caller.userId
  const added = { collectionId, files, isFromFolder: false, batchId, addedBy, sharedBy: addedBy }
  await addMembers(transaction, added, deps)
  await touchCollections(transaction, [collectionId])
  const after = { file_ids: fileIds, access_mode: collection.accessMode }
  const at = deps.now()
  const entry = { kind: 'collection' as const, id: collectionId, action: 'file.add', after, at }
  await recordChange(transaction, caller, entry)
  if (await exceedsFilesMax(transaction, collectionId, deps.filesMax)) {
    const message = `The collection "${collection.name}" has ${deps.filesMax} files, which is the limit.`
    throw new AppError('unprocessable', message, { code: 'collection_full' })
  }
  return findMembers(transaction, caller, { collection, fileIds })
}

/**
 * Makes these files the only members of a collection of access mode `collection`. Those that are found
 * there already stay with the user who shared them. Throws `permission_denied` for a file that
 * `sharedBy` may not share.
 */
export async function replaceMembers(
  transaction: Transaction,
  deps: MembersDeps,
  params: {
    readonly collectionId: string
    readonly sharedBy: RequestPrincipal
    readonly fileIds: readonly string[]
  },
): Promise<void> {
  const { collectionId, sharedBy: caller } = params
  const wanted = new Set(params.fileIds.map((id) => id.toLowerCase()))
  const present = await readMemberIds(transaction, collectionId)
  await lockFiles(transaction, [...new Set([...wanted, ...present.all])])
  await lockCollection(transaction, collectionId, 'shared')
  const added = [...wanted.difference(present.open)]
  await requireFileRoles(transaction, caller, { fileIds: added, accessMode: 'collection' })
  const surplus = [...present.all.difference(wanted)]
  await removeMembers(transaction, collectionId, { fileIds: surplus })
  await deleteUnusedChunks(transaction, surplus)
  const { userId: sharedBy } = caller
  const files = added.map((fileId) => ({ fileId, attributes: null }))
  const members = { files, isFromFolder: false, batchId: null, addedBy: sharedBy, sharedBy }
  await addMembers(transaction, { collectionId, ...members }, deps)
}

function auditRemoval(
  transaction: Transaction,
  caller: RequestPrincipal,
  { id, fileId, at }: { id: string; fileId: string; at: Date },
): Promise<void> {
  const before = { file_id: fileId }
  const entry = { kind: 'collection' as const, id, action: 'file.remove', before, at }
  return recordChange(transaction, caller, entry)
}

async function removeMember(
  transaction: Transaction,
  collectionId: string,
  fileId: string,
): Promise<void> {
  await lockFiles(transaction, [fileId])
  await removeMembers(transaction, collectionId, { fileIds: [fileId] })
  await deleteUnusedChunks(transaction, [fileId])
}

/** A file in the trash keeps its memberships, which no query returns until it is restored. */
async function onFilesChanged(
  transaction: Transaction,
  { kind, fileIds }: FileChange,
  queue: IngestQueue,
): Promise<void> {
  if (kind === 'trashed' || kind === 'deleted' || fileIds.length === 0) return
  if (kind === 'content') await queueChangedFiles(transaction, fileIds, queue)
  await syncMovedFiles(transaction, fileIds, queue)
}

async function requireAccess(
  handle: Handle,
  caller: RequestPrincipal,
  reference: string,
  role: Role,
): Promise<CollectionAccess> {
  const found = await findAccess(handle, caller, reference)
  if (found === undefined) throw collectionNotFound(reference)
  requireCollectionRole(found, role)
  return found
}

async function requireMember(
  handle: Handle,
  caller: RequestPrincipal,
  { collection, fileId }: { collection: CollectionAccess; fileId: string },
): Promise<Member> {
  if (!isUuid(fileId)) throw fileNotFound(fileId)
  const [found] = await findMembers(handle, caller, { collection, fileIds: [fileId] })
  if (found === undefined) throw fileNotFound(fileId)
  return found
}
