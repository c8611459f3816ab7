import { type SQL, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import type { JobHandler, Jobs, Transaction } from '#jobs/jobs.ts'
import { asRecord } from '#lib/json.ts'
import {
  addMembers,
  dropUnwanted,
  lockFiles,
  type Queue,
  removeMembers,
  uuidArray,
} from './member-store.ts'

/** Collections that have everything that is in a folder. */

export const followQueue = 'follow-folder'
/** More are left to a job, so that no transaction is long. */
const filesPerTransaction = 200
const attemptsMax = 20

type Following = Queue & { readonly jobs: Pick<Jobs, 'add'> }

/**
 * Files that move and collections that begin to follow a folder must see each other: the former
 * share this lock, the latter have it alone.
 */
async function lockFollowing(transaction: Transaction, how: 'shared' | 'alone'): Promise<void> {
  const lock = sql.raw(how === 'shared' ? 'pg_advisory_xact_lock_shared' : 'pg_advisory_xact_lock')
  await transaction.execute(sql`select ${lock}(hashtextextended('followed folders', 0))`)
}

/** After files have come or moved: each is in exactly the collections that follow a folder above it. */
export async function followFiles(
  transaction: Transaction,
  fileIds: readonly string[],
  following: Following,
): Promise<void> {
  await lockFollowing(transaction, 'shared')
  const above = sql`
    with recursive above (file_id, folder_id) as (
      select node.id, node.parent_id from node
      where node.id = any(${uuidArray(fileIds)}) and node.kind = 'file'
        and node.trashed_at is null
      union all
      select above.file_id, node.parent_id
      from above join node on node.id = above.folder_id)`
  const rows = await transaction.execute<{ file_id: string; collection_id: string; gone: boolean }>(
    sql`${above}
      select member.file_id, member.collection_id, true as gone
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
        and ${isNotExcluded(sql`collection.id`, sql`above.file_id`)}`,
  )
  if (rows.length === 0) return
  await lockFiles(
    transaction,
    rows.map((row) => row.file_id),
  )
  const left = rows.filter(({ gone }) => gone)
  for (const [id, members] of Map.groupBy(left, (row) => row.collection_id)) {
    const files = uuidArray(members.map((row) => row.file_id))
    await removeMembers(
      transaction,
      sql`member.collection_id = ${id}::uuid and member.followed
      and member.file_id = any(${files})`,
    )
  }
  await dropUnwanted(
    transaction,
    left.map((row) => row.file_id),
  )
  const come = rows.filter(({ gone }) => !gone)
  for (const [id, members] of Map.groupBy(come, (row) => row.collection_id)) {
    await addFollowed(
      transaction,
      id,
      { fileIds: members.map((row) => row.file_id), sharedBy: null },
      following,
    )
  }
}

/** Before a collection follows another folder, or none. */
export async function followFolder(
  transaction: Transaction,
  {
    collectionId,
    folderId,
    sharedBy,
  }: { collectionId: string; folderId: string | null; sharedBy: string },
  following: Following,
): Promise<void> {
  await lockFollowing(transaction, 'alone')
  const left = await transaction.execute<{ file_id: string }>(sql`
    ${belowFolder(folderId)}
    select member.file_id from collection_file member
    where member.collection_id = ${collectionId}::uuid and member.followed
      and member.file_id not in (select id from below)`)
  const leftIds = left.map((row) => row.file_id)
  await lockFiles(transaction, leftIds)
  await removeMembers(
    transaction,
    sql`member.collection_id = ${collectionId}::uuid
      and member.followed and member.file_id = any(${uuidArray(leftIds)})`,
  )
  await dropUnwanted(transaction, leftIds)
  const come = await missing(transaction, { collectionId, folderId })
  await addFollowed(transaction, collectionId, { fileIds: come, sharedBy }, following)
}

/** Brings in what one transaction had no room for. */
export function followWorker(
  { drizzle }: Pick<Database, 'drizzle'>,
  following: Following,
): JobHandler {
  return {
    concurrencyMax: 1,
    attemptsMax,
    async run({ payload }) {
      const collectionId = String(asRecord(payload)['collectionId'])
      await drizzle.transaction(async (transaction) => {
        await lockFollowing(transaction, 'shared')
        const [known] = await transaction.execute<{ folder_id: string | null }>(sql`
          select folder_id from collection where id = ${collectionId}::uuid`)
        if (known === undefined) return
        const come = await missing(transaction, { collectionId, folderId: known.folder_id })
        await addFollowed(transaction, collectionId, { fileIds: come, sharedBy: null }, following)
      })
    },
    onFailed: async () => {},
  }
}

function belowFolder(folderId: string | null) {
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

async function missing(
  transaction: Transaction,
  { collectionId, folderId }: { collectionId: string; folderId: string | null },
): Promise<string[]> {
  if (folderId === null) return []
  const rows = await transaction.execute<{ id: string }>(sql`
    ${belowFolder(folderId)}
    select below.id from below
    where below.kind = 'file' and not exists (select 1 from collection_file member
      where member.collection_id = ${collectionId}::uuid and member.file_id = below.id)
      and ${isNotExcluded(sql`${collectionId}::uuid`, sql`below.id`)}
    order by below.id limit ${filesPerTransaction + 1}`)
  return rows.map((row) => row.id)
}

async function addFollowed(
  transaction: Transaction,
  collectionId: string,
  { fileIds, sharedBy }: { fileIds: readonly string[]; sharedBy: string | null },
  following: Following,
): Promise<void> {
  const now = fileIds.slice(0, filesPerTransaction)
  if (now.length === 0) return
  await lockFiles(transaction, now)
  const [known] = await transaction.execute<{ owner_id: string; shared_by: string }>(sql`
    select owner_id, coalesce(folder_shared_by, owner_id) as shared_by from collection where id = ${collectionId}::uuid for share`)
  if (known === undefined) return
  await addMembers(
    transaction,
    {
      collectionId,
      files: now.map((fileId) => ({ fileId, attributes: null })),
      isFollowed: true,
      batchId: null,
      addedBy: known.owner_id,
      sharedBy: sharedBy ?? known.shared_by,
    },
    following,
  )
  if (fileIds.length === now.length) return
  await following.jobs.add(transaction, {
    queue: followQueue,
    key: collectionId,
    payload: { collectionId },
  })
}
