import { type SQL, sql } from 'drizzle-orm'
import type { Transaction } from '#db/client.ts'
import { fileIndex, reindexDeletedFile } from '#db/schema/retrieval.ts'
import type { Page, PageRequest } from '#retrieval/collections/collections.ts'
import { lockFiles } from '#retrieval/collections/member-store.ts'
import { readPage } from '#retrieval/collections/store.ts'
import { instant, uuidArray } from '#retrieval/sql-store.ts'
import type { ReindexFailure } from './record.ts'
import { type Counters, isBackward } from './reindex.ts'
import type { Handle, ReindexState } from './store.ts'
import type { VerifiedFile } from './verification-store.ts'

/**
 * The files of a reindex: rows of `file_index` with its id. Rows of the target index are the files of
 * the start; rows of the source index are files that have to be moved back.
 */

/** The index that the files move to. */
export function destinationOf(
  reindex: Pick<ReindexState, 'status' | 'sourceIndexId' | 'targetIndexId'>,
): number {
  return isBackward(reindex.status) ? reindex.sourceIndexId : reindex.targetIndexId
}

const isOf = (reindex: ReindexState) =>
  sql`${fileIndex.indexId} = ${destinationOf(reindex)}
    and ${fileIndex.reindexId} = ${reindex.id}::uuid`

/** The node of a purged file may outlive its content for a while. */
const hasContent = sql`exists (select 1 from file where file.node_id = ${fileIndex.fileId})`

const resetToPending = sql`state = 'pending', stage = 'waiting', attempts = 0, error_code = null,
  error_message = null`

/** A position in the files of one collection, in the order of their ids. */
export type FileCursor = { readonly collectionId: string; readonly after: string | null }

export const minFileId = '00000000-0000-0000-0000-000000000000'

/** Adds the next files of a collection to the target; returns the next position, null at the end. */
export async function enqueuePage(
  handle: Handle,
  reindex: ReindexState,
  { cursor, filesMax, at }: { cursor: FileCursor; filesMax: number; at: Date },
): Promise<string | null> {
  const [last] = await handle.execute<{ file_id: string }>(sql`
    with page as materialized (
      select member.file_id from collection_file member
      join file on file.node_id = member.file_id
      where member.collection_id = ${cursor.collectionId}::uuid
        and member.file_id > ${cursor.after ?? minFileId}::uuid
      order by member.file_id limit ${filesMax}),
    added as (
      insert into ${fileIndex} (file_id, index_id, state, reindex_id, updated_at)
      select file_id, ${reindex.targetIndexId}::integer, 'pending', ${reindex.id}::uuid,
        ${instant(at)} from page
      on conflict do nothing)
    select file_id from page order by file_id desc limit 1`)
  return last?.file_id ?? null
}

/** Adds all files that the target lacks, under the lock of the collections; returns their number. */
export async function enqueueMissing(
  transaction: Transaction,
  reindex: ReindexState,
  at: Date,
): Promise<number> {
  const added = await transaction.execute(sql`
    insert into ${fileIndex} (file_id, index_id, state, reindex_id, updated_at)
    select distinct member.file_id, ${reindex.targetIndexId}::integer, 'pending',
      ${reindex.id}::uuid, ${instant(at)}
    from collection_file member join file on file.node_id = member.file_id
    where member.collection_id = any(${uuidArray(reindex.collectionIds)})
      and not exists (select 1 from ${fileIndex} known
        where known.index_id = ${reindex.targetIndexId} and known.file_id = member.file_id)
    on conflict do nothing
    returning 1`)
  return added.length
}

/** Deletes files from the target that have left all collections of the reindex. */
export async function dequeueRemoved(
  transaction: Transaction,
  reindex: ReindexState,
): Promise<void> {
  await transaction.execute(sql`
    delete from ${fileIndex} where index_id = ${reindex.targetIndexId} and not exists (
      select 1 from collection_file member
      where member.collection_id = any(${uuidArray(reindex.collectionIds)})
        and member.file_id = ${fileIndex.fileId})`)
}

/** The number of distinct files. */
export async function countFiles(
  handle: Handle,
  collectionIds: readonly string[],
): Promise<number> {
  const [row] = await handle.execute<{ count: number }>(sql`
    select count(distinct member.file_id)::integer as count
    from collection_file member join file on file.node_id = member.file_id
    where member.collection_id = any(${uuidArray(collectionIds)})`)
  return row?.count ?? 0
}

/** Pending files by id. */
export async function findPending(
  handle: Handle,
  reindex: ReindexState,
  params: { after: string | null; except: readonly string[]; filesMax: number },
): Promise<readonly string[]> {
  const rows = await handle.execute<{ id: string }>(sql`
    select ${fileIndex.fileId} as id from ${fileIndex}
    where ${isOf(reindex)} and ${fileIndex.state} = 'pending' and ${hasContent}
      and ${fileIndex.fileId} > ${params.after ?? minFileId}::uuid
      and not ${fileIndex.fileId} = any(${uuidArray(params.except)})
    order by ${fileIndex.fileId} limit ${params.filesMax}`)
  return rows.map(({ id }) => id)
}

export async function hasPending(handle: Handle, reindex: ReindexState): Promise<boolean> {
  const pending = await findPending(handle, reindex, { after: null, except: [], filesMax: 1 })
  return pending.length > 0
}

export type FileProgress = {
  readonly id: string
  readonly state: 'pending' | 'done' | 'failed' | 'skipped'
  readonly attempts: number
  readonly error: string | null
  readonly updated_ms: number
}

/** The progress of these files, latest change last; deleted files are absent. */
export async function readFileProgress(
  handle: Handle,
  reindex: ReindexState,
  fileIds: readonly string[],
): Promise<readonly FileProgress[]> {
  return handle.execute<FileProgress>(sql`
    select file_id as id, state, attempts, error_code || ': ' || error_message as error,
      (extract(epoch from updated_at) * 1000)::float8 as updated_ms
    from ${fileIndex}
    where ${fileIndex.indexId} = ${destinationOf(reindex)}
      and ${fileIndex.fileId} = any(${uuidArray(fileIds)}) and ${hasContent}
    order by updated_at`)
}

export type TargetCounts = Pick<Counters, 'completed' | 'failed' | 'added'> & {
  readonly skipped: number
  readonly pending: number
  /** Ended within the last minute. */
  readonly recent: number
}

const rateMs = 60_000

export async function countTarget(
  handle: Handle,
  reindex: ReindexState,
  at: Date,
): Promise<TargetCounts> {
  const since = new Date(at.getTime() - rateMs)
  const isOwn = sql`reindex_id = ${reindex.id}::uuid`
  // A file that changes stays completed while its new content is processed.
  const counted = sql`case when state = 'pending' and sha256 is not null then 'done' else state end`
  const deleted = sql`select file_id from ${reindexDeletedFile} where ${isOwn}`
  const countOf = (state: string) =>
    sql`(count(*) filter (where ${isOwn} and ${counted} = ${state} and file_id not in (${deleted})))::integer`
  const [row] = await handle.execute<TargetCounts>(sql`
    select ${countOf('done')} + (select count(*) from (${deleted}) kept)::integer as completed, ${countOf('failed')} as failed,
      ${countOf('skipped')} as skipped, ${countOf('pending')} as pending,
      (count(*) filter (where ${isOwn} and state <> 'pending'
        and updated_at > ${instant(since)}))::integer as recent,
      (count(*) filter (where reindex_id is distinct from ${reindex.id}::uuid))::integer as added
    from ${fileIndex} where index_id = ${reindex.targetIndexId}`)
  return row ?? { completed: 0, failed: 0, skipped: 0, pending: 0, recent: 0, added: 0 }
}

export function listFailures(
  handle: Handle,
  reindex: ReindexState,
  page: PageRequest,
): Promise<Page<ReindexFailure>> {
  return readPage(fileIndex.fileId, page, (where, orderBy, limit) =>
    handle.execute<ReindexFailure>(sql`
      select ${fileIndex.fileId} as file_id, node.name as filename,
        coalesce(error_code, 'internal_error') as code, coalesce(error_message, '') as message,
        attempts
      from ${fileIndex} join node on node.id = ${fileIndex.fileId}
      where ${isOf(reindex)} and state = 'failed' and ${where}
      order by ${orderBy} limit ${limit}`),
  )
}

export async function retryFailed(
  transaction: Transaction,
  reindex: ReindexState,
  at: Date,
): Promise<void> {
  await transaction.execute(sql`
    update ${fileIndex} set ${resetToPending}, updated_at = ${instant(at)}
    where ${isOf(reindex)} and state = 'failed'`)
}

/**
 * Marks files as failed that verification did not find in the index; returns their number. Those
 * that have been ingested again since they were read are left as they are.
 */
export async function failFiles(
  transaction: Transaction,
  reindex: ReindexState,
  failure: { files: readonly VerifiedFile[]; code: string; message: string; at: Date },
): Promise<number> {
  const failed = await transaction.execute(sql`
    update ${fileIndex} set state = 'failed', error_code = ${failure.code},
      error_message = ${failure.message}, updated_at = ${instant(failure.at)}
    from json_to_recordset(${JSON.stringify(failure.files)}::json)
      as missing("fileId" uuid, "updatedAt" timestamptz)
    where ${isOf(reindex)} and ${fileIndex.state} = 'done'
      and ${fileIndex.fileId} = missing."fileId"
      and ${fileIndex.updatedAt} = missing."updatedAt"
    returning 1`)
  return failed.length
}

/**
 * The next files of a collection that the source lacks: absent, outdated, or failed there while the
 * target has them. `after` is the next position, null at the end.
 */
export async function findMissingInSource(
  handle: Handle,
  reindex: ReindexState,
  { cursor, filesMax }: { cursor: FileCursor; filesMax: number },
): Promise<{ fileIds: readonly string[]; after: string | null }> {
  const rows = await handle.execute<{ id: string; is_missing: boolean }>(sql`
    select file.node_id as id, (
      source.file_id is null
      or (source.state = 'done' and source.sha256 is distinct from file.sha256)
      or (source.state in ('failed', 'skipped') and ${isCurrent('target')}
        and source.reindex_id is distinct from ${reindex.id}::uuid)) as is_missing
    from ${membersWithBothIndexes(reindex)}
    where member.collection_id = ${cursor.collectionId}::uuid
      and member.file_id > ${cursor.after ?? minFileId}::uuid
    order by member.file_id limit ${filesMax}`)
  const fileIds = rows.filter((row) => row.is_missing).map(({ id }) => id)
  return { fileIds, after: rows.at(-1)?.id ?? null }
}

/** Adds files to the source, if they are still members. */
export async function enqueueInSource(
  transaction: Transaction,
  reindex: ReindexState,
  { fileIds, at }: { fileIds: readonly string[]; at: Date },
): Promise<void> {
  await lockFiles(transaction, fileIds)
  await transaction.execute(sql`
    insert into ${fileIndex} as known (file_id, index_id, state, reindex_id, updated_at)
    select distinct file.node_id, ${reindex.sourceIndexId}::integer, 'pending',
      ${reindex.id}::uuid, ${instant(at)}
    from file join collection_file member on member.file_id = file.node_id
    where file.node_id = any(${uuidArray(fileIds)})
      and member.collection_id = any(${uuidArray(reindex.collectionIds)})
    on conflict (file_id, index_id) do update set ${resetToPending},
      reindex_id = excluded.reindex_id, updated_at = excluded.updated_at
      where known.state in ('failed', 'skipped') or (known.state = 'done'
        and known.sha256 is distinct from (select sha256 from file where node_id = known.file_id))`)
}

/** Files that only the target has: `waiting` for the source, or `failed` there. */
export async function countTargetOnly(
  handle: Handle,
  reindex: ReindexState,
): Promise<{ waiting: number; failed: number }> {
  const hasFailed = sql`coalesce(source.state in ('failed', 'skipped')
    and source.reindex_id = ${reindex.id}::uuid, false)`
  const [row] = await handle.execute<{ waiting: number; failed: number }>(sql`
    select (count(distinct member.file_id) filter (where not ${hasFailed}))::integer as waiting,
      (count(distinct member.file_id) filter (where ${hasFailed}))::integer as failed
    from ${membersWithBothIndexes(reindex)}
    where member.collection_id = any(${uuidArray(reindex.collectionIds)}) and (
      source.file_id is null or (${isCurrent('target')} and not ${isCurrent('source')}))`)
  return row ?? { waiting: 0, failed: 0 }
}

function membersWithBothIndexes({ sourceIndexId, targetIndexId }: ReindexState): SQL {
  return sql`collection_file member
    join file on file.node_id = member.file_id
    left join file_index source
      on source.file_id = member.file_id and source.index_id = ${sourceIndexId}
    left join file_index target
      on target.file_id = member.file_id and target.index_id = ${targetIndexId}`
}

function isCurrent(table: 'source' | 'target'): SQL {
  const name = sql.raw(table)
  return sql`coalesce(${name}.state = 'done' and ${name}.sha256 = file.sha256, false)`
}
