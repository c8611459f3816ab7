import { type SQL, sql } from 'drizzle-orm'
import { collectionExclusion, embeddingIndex, fileIndex } from '#db/schema/retrieval.ts'
import type { Attributes } from '#files/files.ts'
import type { Jobs, Transaction } from '#jobs/jobs.ts'
import { removeChunks } from '#retrieval/index/store.ts'

/** What changes who is a member, and what then is to be done. All of it in the caller's transaction. */

export type Queue = { readonly jobs: Pick<Jobs, 'add'>; readonly now: () => Date }

/** The work of the ingest: a file and an index. */
const ingestQueue = 'ingest'

export function uuidArray(ids: readonly string[]): SQL {
  return sql`${`{${ids.join(',')}}`}::uuid[]`
}

/**
 * The lock of all memberships of these files. It is taken before that of a collection, always, so
 * that nobody waits in a circle; and it keeps apart who adds a file and who finds it in no collection.
 */
export async function lockFiles(
  transaction: Transaction,
  fileIds: readonly string[],
): Promise<void> {
  await transaction.execute(sql`
    select id from node where id = any(${uuidArray(fileIds)}) order by id for no key update`)
}

export type Added = {
  readonly collectionId: string
  readonly files: readonly { readonly fileId: string; readonly attributes: Attributes | null }[]
  readonly isFollowed: boolean
  readonly batchId: string | null
  readonly addedBy: string
  /** Whose right to share these files opens them in a collection of access mode `collection`. */
  readonly sharedBy: string
}

/** What is a member already stays one, with the attributes that are given now, if any are. */
export async function addMembers(
  transaction: Transaction,
  added: Added,
  queue: Queue,
): Promise<void> {
  const at = queue.now().toISOString()
  const rows = added.files.map(({ fileId, attributes }) => ({ file_id: fileId, attributes }))
  await transaction.execute(sql`
    insert into collection_file as known
      (collection_id, file_id, attributes, followed, batch_id, added_by, shared_by, added_at)
    select ${added.collectionId}::uuid, row.file_id, coalesce(row.attributes, '{}'::jsonb),
      ${added.isFollowed}, ${added.batchId}::uuid, ${added.addedBy}::uuid,
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
  if (!added.isFollowed) {
    await transaction.execute(sql`
      delete from ${collectionExclusion} where collection_id = ${added.collectionId}::uuid
        and file_id = any(${uuidArray(fileIds)})`)
  }
  await queueMembers(
    transaction,
    sql`member.collection_id = ${added.collectionId}::uuid
    and member.file_id = any(${uuidArray(fileIds)})`,
    { queue, isChanged: false },
  )
}

/**
 * Asks for what the indexes of these members lack: the target of a reindex where one runs. What is
 * there stays, unless the content is another one since.
 */
async function queueMembers(
  transaction: Transaction,
  which: SQL,
  { queue, isChanged }: { queue: Queue; isChanged: boolean },
): Promise<void> {
  // While a reindex took its changes to the target, what the source has may have grown old.
  const isAnew = isChanged ? sql`known.state <> 'done' or` : sql`known.state = 'done' and`
  const queued = await transaction.execute<{ file_id: string; index_id: number }>(sql`
    insert into ${fileIndex} as known (file_id, index_id, state, updated_at)
    select distinct member.file_id, coalesce(collection.target_index_id, collection.index_id),
      'pending', ${queue.now().toISOString()}::timestamptz
    from collection_file member
    join collection on collection.id = member.collection_id
    where ${which}
    on conflict (file_id, index_id) do update set state = 'pending', stage = 'waiting',
      attempts = 0, error_code = null, error_message = null, updated_at = excluded.updated_at
      where ${isAnew} known.sha256 is distinct from (
        select file.sha256 from file where file.node_id = known.file_id)
    returning file_id, index_id`)
  for (const { file_id: fileId, index_id: indexId } of queued) {
    await queue.jobs.add(transaction, {
      queue: ingestQueue,
      key: `${fileId}:${indexId}`,
      payload: { fileId, indexId },
    })
  }
}

/** After the content of these files has changed: in every collection that they are in. */
export async function queueChanged(
  transaction: Transaction,
  fileIds: readonly string[],
  queue: Queue,
): Promise<void> {
  // No reindex may take another turn until the work is where it belongs now.
  await transaction.execute(sql`
    select id from collection where id in (
      select collection_id from collection_file where file_id = any(${uuidArray(fileIds)}))
    order by id for share`)
  const which = sql`member.file_id = any(${uuidArray(fileIds)})`
  await queueMembers(transaction, which, { queue, isChanged: true })
}

/** Makes `sharer` the one whose rights open the files that their owners did not add themselves. */
export async function shareMembers(
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

/** Keeps a file out of the collections that follow its folder, until it is added by itself. */
export async function excludeFile(
  transaction: Transaction,
  row: { collectionId: string; fileId: string; excludedBy: string; at: Date },
): Promise<void> {
  await transaction.execute(sql`
    insert into ${collectionExclusion} (collection_id, file_id, excluded_by, created_at)
    values (${row.collectionId}::uuid, ${row.fileId}::uuid, ${row.excludedBy}::uuid,
      ${row.at.toISOString()}::timestamptz)
    on conflict do nothing`)
}

/** Whether it has more files than it may. */
export async function isFull(
  transaction: Transaction,
  collectionId: string,
  filesMax: number,
): Promise<boolean> {
  const rows = await transaction.execute(sql`
    select 1 from collection_file where collection_id = ${collectionId}::uuid
    offset ${filesMax} limit 1`)
  return rows.length > 0
}

export async function lockMembers(transaction: Transaction, collectionId: string): Promise<void> {
  await transaction.execute(sql`
    select id from node
    where id in (select file_id from collection_file where collection_id = ${collectionId}::uuid)
    order by id for no key update`)
}

export async function removeMember(
  transaction: Transaction,
  { collectionId, fileId }: { collectionId: string; fileId: string },
): Promise<void> {
  await removeMembers(
    transaction,
    sql`member.collection_id = ${collectionId}::uuid and member.file_id = ${fileId}::uuid`,
  )
}

export function removeAllMembers(
  transaction: Transaction,
  collectionId: string,
): Promise<readonly string[]> {
  return removeMembers(transaction, sql`member.collection_id = ${collectionId}::uuid`)
}

/** Ends memberships; says which files were members. */
export async function removeMembers(
  transaction: Transaction,
  which: SQL,
): Promise<readonly string[]> {
  const rows = await transaction.execute<{ file_id: string }>(sql`
    delete from collection_file member where ${which} returning member.file_id`)
  return rows.map((row) => row.file_id)
}

/** So many at a time, so that no statement is long. */
const filesPerDrop = 1_000

/**
 * Takes the passages of these files out of every index that no collection of theirs is searched in.
 * An index that is kept to go back to keeps them as long as any collection has the file.
 */
export async function dropUnwanted(
  transaction: Transaction,
  fileIds: readonly string[],
): Promise<void> {
  for (let at = 0; at < fileIds.length; at += filesPerDrop) {
    await dropSome(transaction, fileIds.slice(at, at + filesPerDrop))
  }
}

async function dropSome(transaction: Transaction, fileIds: readonly string[]): Promise<void> {
  const rows = await transaction.execute<{ file_id: string; index_id: number }>(sql`
    delete from ${fileIndex} progress using ${embeddingIndex} kept
    where kept.id = progress.index_id and progress.file_id = any(${uuidArray(fileIds)})
      and not exists (
        select 1 from collection_file member
        join collection on collection.id = member.collection_id
        where member.file_id = progress.file_id and (
          kept.state in ('warm', 'dropping')
          or progress.index_id in (collection.index_id, collection.target_index_id)))
    returning progress.file_id, progress.index_id`)
  const byIndex = Map.groupBy(rows, ({ index_id: id }) => id)
  for (const [indexId, dropped] of byIndex) {
    await removeChunks(
      transaction,
      indexId,
      dropped.map((row) => row.file_id),
    )
  }
}
