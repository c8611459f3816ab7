import { type SQL, sql } from 'drizzle-orm'
import type { Transaction } from '#db/client.ts'
import { collectionExclusion, embeddingIndex, fileIndex } from '#db/schema/retrieval.ts'
import type { Attributes } from '#files/files.ts'
import type { Jobs } from '#jobs/jobs.ts'
import { deleteChunks } from '#retrieval/index/store.ts'
import { uuidArray } from '#retrieval/sql-store.ts'

/** Changes of memberships and the ingest work that follows, in the caller's transaction. */

export type IngestQueue = { readonly jobs: Pick<Jobs, 'add'>; readonly now: () => Date }

const ingestQueue = 'ingest'

/**
 * Locks all memberships of these files. Always taken before the lock of a collection, to prevent
 * deadlocks. Keeps an addition apart from the deletion of chunks that no collection needs.
 */
export async function lockFiles(
  transaction: Transaction,
  fileIds: readonly string[],
): Promise<void> {
  await transaction.execute(sql`
    select id from node where id = any(${uuidArray(fileIds)}) order by id for no key update`)
}

/** `lockFiles` of all members of a collection. */
export async function lockMembers(transaction: Transaction, collectionId: string): Promise<void> {
  await transaction.execute(sql`
    select id from node
    where id in (select file_id from collection_file where collection_id = ${collectionId}::uuid)
    order by id for no key update`)
}

export type AddedMembers = {
  readonly collectionId: string
  readonly files: readonly { readonly fileId: string; readonly attributes: Attributes | null }[]
  readonly isFromFolder: boolean
  readonly batchId: string | null
  readonly addedBy: string
  /** Whose right to share these files opens them in a collection of access mode `collection`. */
  readonly sharedBy: string
}

/** Existing members stay, with the new attributes if there are any. */
export async function addMembers(
  transaction: Transaction,
  added: AddedMembers,
  queue: IngestQueue,
): Promise<void> {
  const at = queue.now().toISOString()
  const rows = added.files.map(({ fileId, attributes }) => ({ file_id: fileId, attributes }))
  await transaction.execute(sql`
    insert into collection_file as known
      (collection_id, file_id, attributes, followed, batch_id, added_by, shared_by, added_at)
    select ${added.collectionId}::uuid, row.file_id, coalesce(row.attributes, '{}'::jsonb),
      ${added.isFromFolder}, ${added.batchId}::uuid, ${added.addedBy}::uuid,
      ${added.sharedBy}::uuid, ${at}::timestamptz
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      as row(file_id uuid, attributes jsonb)
    on conflict (collection_id, file_id) do update set
      attributes = case when excluded.attributes = '{}'::jsonb
        then known.attributes else excluded.attributes end,
      batch_id = coalesce(excluded.batch_id, known.batch_id),
      shared_by = case
        when excluded.followed and not known.followed then known.shared_by
        when coalesce(known.shared_by, known.added_by) = (
          select owner_id from node where node.id = known.file_id) then known.shared_by
        else excluded.shared_by end,
      followed = known.followed and excluded.followed`)
  const fileIds = added.files.map(({ fileId }) => fileId)
  const isAdded = sql`member.collection_id = ${added.collectionId}::uuid
    and member.file_id = any(${uuidArray(fileIds)})`
  if (!added.isFromFolder) {
    await transaction.execute(sql`delete from ${collectionExclusion} member where ${isAdded}`)
  }
  await queueIngest(transaction, isAdded, { queue, isChanged: false })
}

/** Adds ingest jobs for what the target index (or the only index) of these members lacks. */
async function queueIngest(
  transaction: Transaction,
  where: SQL,
  { queue, isChanged }: { queue: IngestQueue; isChanged: boolean },
): Promise<void> {
  // Chunks of a source index may be outdated while a reindex sends changes to its target.
  const isStale = isChanged ? sql`known.state <> 'done' or` : sql`known.state = 'done' and`
  const queued = await transaction.execute<{
    file_id: string
    index_id: number
    owner_id: string
  }>(sql`
    insert into ${fileIndex} as known (file_id, index_id, state, updated_at)
    select distinct member.file_id, coalesce(collection.target_index_id, collection.index_id),
      'pending', ${queue.now().toISOString()}::timestamptz
    from collection_file member
    join collection on collection.id = member.collection_id
    where ${where}
    on conflict (file_id, index_id) do update set state = 'pending', stage = 'waiting',
      attempts = 0, error_code = null, error_message = null, updated_at = excluded.updated_at
      where ${isStale} known.sha256 is distinct from (
        select file.sha256 from file where file.node_id = known.file_id)
    returning file_id, index_id, (select owner_id from node where node.id = file_id) as owner_id`)
  for (const { file_id: fileId, index_id: indexId, owner_id } of queued) {
    await queue.jobs.add(transaction, {
      queue: ingestQueue,
      key: `${fileId}:${indexId}`,
      lane: `${owner_id}:${indexId}`,
      payload: { fileId, indexId },
    })
  }
}

/** Ingests changed files again, in all of their collections. */
export async function queueChangedFiles(
  transaction: Transaction,
  fileIds: readonly string[],
  queue: IngestQueue,
): Promise<void> {
  // A reindex must not switch indexes between the choice of the index and the job.
  await transaction.execute(sql`
    select id from collection where id in (
      select collection_id from collection_file where file_id = any(${uuidArray(fileIds)}))
    order by id for share`)
  const isOfFile = sql`member.file_id = any(${uuidArray(fileIds)})`
  await queueIngest(transaction, isOfFile, { queue, isChanged: true })
}

/** Makes `sharer` responsible for the files that were not added by their owners. */
export async function setSharer(
  transaction: Transaction,
  collectionId: string,
  sharer: string,
): Promise<void> {
  await transaction.execute(sql`
    update collection_file member set shared_by = ${sharer}::uuid
    from node
    where member.collection_id = ${collectionId}::uuid and node.id = member.file_id
      and node.trashed_at is null and node.owner_id <> coalesce(member.shared_by, member.added_by)`)
}

/** Keeps a file out of a collection linked to its folder, until it is added directly. */
export async function excludeFile(
  transaction: Transaction,
  row: typeof collectionExclusion.$inferInsert,
): Promise<void> {
  await transaction.insert(collectionExclusion).values(row).onConflictDoNothing()
}

/** Whether the collection has more files than allowed. */
export async function exceedsFilesMax(
  transaction: Transaction,
  collectionId: string,
  filesMax: number,
): Promise<boolean> {
  const rows = await transaction.execute(sql`
    select 1 from collection_file where collection_id = ${collectionId}::uuid
    offset ${filesMax} limit 1`)
  return rows.length > 0
}

export async function setMemberAttributes(
  transaction: Transaction,
  { collectionId, fileId }: { collectionId: string; fileId: string },
  attributes: Attributes,
): Promise<void> {
  await transaction.execute(sql`
    update collection_file set attributes = ${JSON.stringify(attributes)}::jsonb
    where collection_id = ${collectionId}::uuid and file_id = ${fileId}::uuid`)
}

/** Deletes memberships; returns the ids of their files. Callers hold the locks of the files. */
export async function removeMembers(
  transaction: Transaction,
  collectionId: string,
  {
    fileIds,
    onlyFromFolder = false,
  }: { fileIds?: readonly string[]; onlyFromFolder?: boolean } = {},
): Promise<readonly string[]> {
  const isNamed = fileIds === undefined ? sql`true` : sql`file_id = any(${uuidArray(fileIds)})`
  const rows = await transaction.execute<{ file_id: string }>(sql`
    delete from collection_file
    where collection_id = ${collectionId}::uuid and ${isNamed}
      and ${onlyFromFolder ? sql`followed` : sql`true`}
    returning file_id`)
  return rows.map((row) => row.file_id)
}

/** Bounds the size of a statement. */
const filesPerDelete = 1_000

/**
 * Deletes the chunks of these files from every index that none of their collections uses. An index
 * kept for reverting a reindex keeps them while any collection has the file.
 */
export async function deleteUnusedChunks(
  transaction: Transaction,
  fileIds: readonly string[],
): Promise<void> {
  for (let start = 0; start < fileIds.length; start += filesPerDelete) {
    const ids = fileIds.slice(start, start + filesPerDelete)
    const rows = await transaction.execute<{ file_id: string; index_id: number }>(sql`
      delete from ${fileIndex} progress using ${embeddingIndex} kept
      where kept.id = progress.index_id and progress.file_id = any(${uuidArray(ids)})
        and not exists (
          select 1 from collection_file member
          join collection on collection.id = member.collection_id
          where member.file_id = progress.file_id and (
            kept.state in ('warm', 'dropping')
            or progress.index_id in (collection.index_id, collection.target_index_id)))
      returning progress.file_id, progress.index_id`)
    for (const [indexId, deleted] of Map.groupBy(rows, (row) => row.index_id)) {
      const deletedIds = deleted.map((row) => row.file_id)
      await deleteChunks(transaction, indexId, deletedIds)
    }
  }
}
