import { type SQL, sql } from 'drizzle-orm'
import type { Database, Transaction } from '#db/client.ts'
import type { JobHandler } from '#jobs/jobs.ts'
import { asRecord } from '#lib/json.ts'
import { uuidArray } from '#retrieval/sql-store.ts'
import {
  addMembers,
  deleteUnusedChunks,
  type IngestQueue,
  lockFiles,
  removeMembers,
} from './member-store.ts'

/** Collections linked to a folder: every file below the folder is a member. */

/** The name of the job queue; persisted. */
export const folderSyncQueue = 'follow-folder'
/** The rest is left to a job, which bounds the duration of a transaction. */
const filesPerTransaction = 200
const attemptsMax = 20

/**
 * Moves of files share this lock and changes of a collection's folder take it exclusively, so that
 * neither misses the other.
 */
async function lockFolderLinks(
  transaction: Transaction,
  mode: 'shared' | 'exclusive',
): Promise<void> {
  const lock = sql.raw(mode === 'shared' ? 'pg_advisory_xact_lock_shared' : 'pg_advisory_xact_lock')
  await transaction.execute(sql`select ${lock}(hashtextextended('followed folders', 0))`)
}

/** Updates the memberships of new and moved files: one in each collection linked to a folder above. */
export async function syncMovedFiles(
  transaction: Transaction,
  fileIds: readonly string[],
  queue: IngestQueue,
): Promise<void> {
  await lockFolderLinks(transaction, 'shared')
  const rows = await transaction.execute<{
    file_id: string
    collection_id: string
    is_removed: boolean
  }>(sql`
    with recursive above (file_id, folder_id) as (
      select node.id, node.parent_id from node
      where node.id = any(${uuidArray(fileIds)}) and node.kind = 'file'
        and node.trashed_at is null
      union all
      select above.file_id, node.parent_id
      from above join node on node.id = above.folder_id)
    select member.file_id, member.collection_id, true as is_removed
    from collection_file member
    join collection on collection.id = member.collection_id
    where member.followed and member.file_id in (select file_id from above)
      and not exists (select 1 from above
        where above.file_id = member.file_id and above.folder_id = collection.folder_id)
    union all
    select above.file_id, collection.id, false
    from above join collection on collection.folder_id = above.folder_id
    where not exists (select 1 from collection_file member
        where member.file_id = above.file_id and member.collection_id = collection.id)
      and ${isNotExcluded(sql`collection.id`, sql`above.file_id`)}`)
  if (rows.length === 0) return
  const idsOf = (members: readonly { file_id: string }[]) => members.map((row) => row.file_id)
  await lockFiles(transaction, idsOf(rows))
  const removed = rows.filter((row) => row.is_removed)
  for (const [id, members] of Map.groupBy(removed, (row) => row.collection_id)) {
    await removeMembers(transaction, id, { fileIds: idsOf(members), onlyFromFolder: true })
  }
  await deleteUnusedChunks(transaction, idsOf(removed))
  const added = rows.filter((row) => !row.is_removed)
  for (const [id, members] of Map.groupBy(added, (row) => row.collection_id)) {
    await addFromFolder(transaction, { collectionId: id, fileIds: idsOf(members) }, queue)
  }
}

/** Updates the members of a collection before its folder changes; null: no folder. */
export async function syncFolder(
  transaction: Transaction,
  params: { collectionId: string; folderId: string | null; sharedBy: string },
  queue: IngestQueue,
): Promise<void> {
  const { collectionId, folderId, sharedBy } = params
  await lockFolderLinks(transaction, 'exclusive')
  const rows = await transaction.execute<{ file_id: string }>(sql`
    ${nodesBelow(folderId)}
    select member.file_id from collection_file member
    where member.collection_id = ${collectionId}::uuid and member.followed
      and member.file_id not in (select id from below)`)
  const removed = rows.map((row) => row.file_id)
  await lockFiles(transaction, removed)
  await removeMembers(transaction, collectionId, { fileIds: removed, onlyFromFolder: true })
  await deleteUnusedChunks(transaction, removed)
  const fileIds = await findMissing(transaction, { collectionId, folderId })
  await addFromFolder(transaction, { collectionId, fileIds, sharedBy }, queue)
}

/** Adds the files of a large folder, one transaction per job run. */
export function folderSyncHandler(
  { drizzle }: Pick<Database, 'drizzle'>,
  queue: IngestQueue,
): JobHandler {
  return {
    concurrencyMax: 1,
    attemptsMax,
    async run({ payload }) {
      const collectionId = String(asRecord(payload)['collectionId'])
      await drizzle.transaction(async (transaction) => {
        await lockFolderLinks(transaction, 'shared')
        const [known] = await transaction.execute<{ folder_id: string | null }>(sql`
          select folder_id from collection where id = ${collectionId}::uuid`)
        if (known === undefined) return
        const folderId = known.folder_id
        const fileIds = await findMissing(transaction, { collectionId, folderId })
        await addFromFolder(transaction, { collectionId, fileIds }, queue)
      })
    },
    onFailed: async () => {},
  }
}

function nodesBelow(folderId: string | null): SQL {
  return sql`
    with recursive below (id, kind) as (
      select node.id, node.kind from node
      where node.parent_id = ${folderId}::uuid and node.trashed_at is null
      union all
      select node.id, node.kind from below join node on node.parent_id = below.id
      where node.trashed_at is null)`
}

function isNotExcluded(collectionId: SQL, fileId: SQL): SQL {
  return sql`not exists (select 1 from collection_exclusion excluded
    where excluded.collection_id = ${collectionId} and excluded.file_id = ${fileId})`
}

/** Files below the folder that are no members yet, one more than a transaction adds. */
async function findMissing(
  transaction: Transaction,
  { collectionId, folderId }: { collectionId: string; folderId: string | null },
): Promise<readonly string[]> {
  if (folderId === null) return []
  const rows = await transaction.execute<{ id: string }>(sql`
    ${nodesBelow(folderId)}
    select below.id from below
    where below.kind = 'file' and not exists (select 1 from collection_file member
      where member.collection_id = ${collectionId}::uuid and member.file_id = below.id)
      and ${isNotExcluded(sql`${collectionId}::uuid`, sql`below.id`)}
    order by below.id limit ${filesPerTransaction + 1}`)
  return rows.map((row) => row.id)
}

async function addFromFolder(
  transaction: Transaction,
  params: { collectionId: string; fileIds: readonly string[]; sharedBy?: string },
  queue: IngestQueue,
): Promise<void> {
  const { collectionId, sharedBy } = params
  const fileIds = params.fileIds.slice(0, filesPerTransaction)
  if (fileIds.length === 0) return
  await lockFiles(transaction, fileIds)
  const [known] = await transaction.execute<{ owner_id: string; shared_by: string }>(sql`
    select owner_id, coalesce(folder_shared_by, owner_id) as shared_by from collection
    where id = ${collectionId}::uuid for share`)
  if (known === undefined) return
  await addMembers(
    transaction,
    {
      collectionId,
      files: fileIds.map((fileId) => ({ fileId, attributes: null })),
      isFromFolder: true,
      batchId: null,
      addedBy: known.owner_id,
      sharedBy: sharedBy ?? known.shared_by,
    },
    queue,
  )
  if (params.fileIds.length === fileIds.length) return
  await queue.jobs.add(transaction, {
    queue: folderSyncQueue,
    key: collectionId,
    payload: { collectionId },
  })
}
