import type { FileChange, FileHooks, Role } from '#files/files.ts'
import type { Transaction } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import type { CollectionMembers, FileMemberships, Member, NewMember } from './collections.ts'
import {
  countMembers,
  listMembers,
  listMemberships,
  readMembers,
  readOwnAttributes,
  writeOwnAttributes,
} from './list-store.ts'
import {
  addMembers,
  dropUnwanted,
  excludeFile,
  isFull,
  lockFiles,
  type Queue,
  queueChanged,
  removeMember,
} from './member-store.ts'
import {
  absentCollection,
  absentFile,
  demandFiles,
  demandRole,
  demandSharer,
} from './rights-store.ts'
import { type CollectionPlace, type Handle, lockCollection, readPlace } from './store.ts'
import { followFiles } from './sync-store.ts'

export type MembersDeps = Queue & {
  transact: <T>(work: (transaction: Transaction) => Promise<T>) => Promise<T>
  filesMax: number
}

export function createMembers(deps: MembersDeps): CollectionMembers {
  const { transact } = deps
  return {
    add: (caller, named, files, batchId) =>
      transact((transaction) => add(transaction, deps, { caller, named, files, batchId })),
    list: (caller, named, { page, filter }) =>
      transact(async (transaction) => {
        const collection = await place(transaction, caller, named)
        const rows = await listMembers(transaction, caller, { collection, page, filter })
        return pageOf(rows, page)
      }),
    count: (caller, named, filter) =>
      transact(async (transaction) => {
        const collection = await place(transaction, caller, named)
        return countMembers(transaction, caller, { collection, filter })
      }),
    find: (caller, named, fileId) =>
      transact(async (transaction) => {
        const collection = await place(transaction, caller, named)
        return readMember(transaction, caller, { collection, fileId })
      }),
    setAttributes: (caller, named, fileId, change) =>
      transact(async (transaction) => {
        const collection = await place(transaction, caller, named, 'editor')
        await readMember(transaction, caller, { collection, fileId })
        const collectionId = collection.id
        const own = await readOwnAttributes(transaction, collectionId, fileId)
        if (own === undefined) throw absentFile(fileId)
        await writeOwnAttributes(transaction, { collectionId, fileId }, change(own.attributes))
        return readMember(transaction, caller, { collection, fileId })
      }),
    remove: (caller, named, fileId) =>
      transact((transaction) => remove(transaction, { caller, named, fileId })),
  }
}

const membershipsMax = 1_000

export function createFileMemberships({ transact, now }: MembersDeps): FileMemberships {
  return {
    list: (caller, fileId) =>
      transact(async (transaction) => {
        await demandSharer(transaction, caller, fileId)
        const rows = await listMemberships(transaction, fileId, membershipsMax + 1)
        return pageOf(rows, { limit: membershipsMax, before: null })
      }),
    remove: (caller, fileId, collectionId) =>
      transact(async (transaction) => {
        await demandSharer(transaction, caller, fileId)
        if (!isUuid(collectionId)) throw absentCollection(collectionId, 'collection_id')
        await lockFiles(transaction, [fileId])
        const own = await readOwnAttributes(transaction, collectionId, fileId)
        if (own === undefined) throw absentCollection(collectionId, 'collection_id')
        if (own.isFollowed) {
          const excludedBy = caller.userId
          await excludeFile(transaction, { collectionId, fileId, excludedBy, at: now() })
        }
        await removeMember(transaction, { collectionId, fileId })
        await dropUnwanted(transaction, [fileId])
      }),
  }
}

export function createFileHooks(deps: MembersDeps): FileHooks {
  return {
    changed: (transaction, change) => changed(transaction, change, deps),
    async joinCollections(transaction, caller, fileId, collections) {
      const files = [{ fileId, attributes: null }]
      for (const [index, named] of collections.entries()) {
        const joined = add(transaction, deps, { caller, named, files, batchId: null })
        await joined.catch((error: unknown) => {
          if (!(error instanceof AppError) || error.kind !== 'not_found') throw error
          throw new AppError('unprocessable', error.message, {
            param: `collections[${index}]`,
            code: 'collection_not_found',
          })
        })
      }
    },
  }
}

/** One item more than asked for says that there are more. */
export function pageOf<T>(
  rows: readonly T[],
  { limit, before }: { limit: number; before: string | null },
) {
  const items = before === null ? rows.slice(0, limit) : rows.slice(-limit)
  return { items, hasMore: rows.length > limit }
}

type Adding = {
  readonly caller: RequestPrincipal
  readonly named: string
  readonly files: readonly NewMember[]
  readonly batchId: string | null
}

async function add(
  transaction: Transaction,
  deps: MembersDeps,
  { caller, named, batchId, ...given }: Adding,
): Promise<readonly Member[]> {
  // What is named twice is added once, as it was named last.
  const files = [...new Map(given.files.map((file) => [file.fileId.toLowerCase(), file])).values()]
  const fileIds = files.map(({ fileId }) => fileId)
  const malformed = fileIds.find((id) => !isUuid(id))
  if (malformed !== undefined) throw absentFile(malformed)
  const { id: collectionId } = await place(transaction, caller, named, 'editor')
  await lockFiles(transaction, fileIds)
  if (!(await lockCollection(transaction, collectionId, 'shared'))) throw absentCollection(named)
  // As it is from now on: whom it opens its files to may just have changed.
  const collection = await place(transaction, caller, collectionId, 'editor')
  await demandFiles(transaction, caller, { fileIds, accessMode: collection.accessMode })
  const addedBy = caller.userId
  const added = { collectionId, files, isFollowed: false, batchId, addedBy, sharedBy: addedBy }
  await addMembers(transaction, added, deps)
  if (await isFull(transaction, collectionId, deps.filesMax)) {
    const sentence = `The collection "${collection.name}" has ${deps.filesMax} files, which is the limit.`
    throw new AppError('unprocessable', sentence, { code: 'collection_full' })
  }
  return readMembers(transaction, caller, { collection, fileIds })
}

async function remove(
  transaction: Transaction,
  { caller, named, fileId }: { caller: RequestPrincipal; named: string; fileId: string },
): Promise<void> {
  const collection = await place(transaction, caller, named, 'editor')
  const { isFollowed } = await readMember(transaction, caller, { collection, fileId })
  if (isFollowed) {
    throw new AppError(
      'conflict',
      "This file is here since it is in the collection's folder; move it, or follow no folder.",
      { code: 'file_followed' },
    )
  }
  await lockFiles(transaction, [fileId])
  await removeMember(transaction, { collectionId: collection.id, fileId })
  await dropUnwanted(transaction, [fileId])
}

/** What is in the trash stays a member, which nobody finds, so that it is there when it comes back. */
async function changed(
  transaction: Transaction,
  { kind, fileIds }: FileChange,
  queue: Queue,
): Promise<void> {
  if (kind === 'trashed' || kind === 'deleted' || fileIds.length === 0) return
  if (kind === 'content') await queueChanged(transaction, fileIds, queue)
  await followFiles(transaction, fileIds, queue)
}

async function place(
  handle: Handle,
  caller: RequestPrincipal,
  named: string,
  role: Role = 'viewer',
): Promise<CollectionPlace> {
  const found = await readPlace(handle, caller, named)
  if (found === undefined) throw absentCollection(named)
  demandRole(found, role)
  return found
}

async function readMember(
  handle: Handle,
  caller: RequestPrincipal,
  { collection, fileId }: { collection: CollectionPlace; fileId: string },
): Promise<Member> {
  if (!isUuid(fileId)) throw absentFile(fileId)
  const [found] = await readMembers(handle, caller, { collection, fileIds: [fileId] })
  if (found === undefined) throw absentFile(fileId)
  return found
}
