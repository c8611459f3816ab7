import { type SQL, sql } from 'drizzle-orm'
import { fileIndex } from '#db/schema/retrieval.ts'
import type { Transaction } from '#jobs/jobs.ts'
import type { PageRequest } from '#retrieval/collections/collections.ts'
import { lockFiles } from '#retrieval/collections/member-store.ts'
import { keysetPage } from '#retrieval/collections/store.ts'
import { type Counters, type FailedFile, isGoingBack } from '#retrieval/reindex/reindex.ts'
import type { Handle, Run } from '#retrieval/reindex/store.ts'
import { uuidArray } from '#retrieval/sql-store.ts'
import { instant } from './routing-store.ts'

/**
 * The files of a reindex: rows of `file_index` that name it. Those in its target are the files that
 * were there at the start, those in its source the ones that it has to bring back.
 */

/** Where the files of a reindex are brought. */
export function aimOf(run: Pick<Run, 'status' | 'sourceIndexId' | 'targetIndexId'>): number {
  return isGoingBack(run.status) ? run.sourceIndexId : run.targetIndexId
}

const isOf = (run: Run) =>
  sql`${fileIndex.indexId} = ${aimOf(run)} and ${fileIndex.reindexId} = ${run.id}::uuid`

/** A content that was purged from the trash leaves its node for a while, and is nobody's to find. */
const hasContent = sql`exists (select 1 from file where file.node_id = ${fileIndex.fileId})`

/** What is to be brought into an index anew. */
const anew = sql`state = 'pending', stage = 'waiting', attempts = 0, error_code = null,
  error_message = null`

export type Cursor = { readonly collectionId: string; readonly after: string | null }

const noFile = '00000000-0000-0000-0000-000000000000'

/** Asks for the next files of a collection in the target; gives where to go on, null at its end. */
export async function recruitPage(
  handle: Handle,
  run: Run,
  { cursor, filesMax, at }: { cursor: Cursor; filesMax: number; at: Date },
): Promise<string | null> {
  const [last] = await handle.execute<{ file_id: string }>(sql`
    with page as materialized (
      select member.file_id from collection_file member
      join file on file.node_id = member.file_id
      where member.collection_id = ${cursor.collectionId}::uuid
        and member.file_id > ${cursor.after ?? noFile}::uuid
      order by member.file_id limit ${filesMax}),
    asked as (
      insert into ${fileIndex} (file_id, index_id, state, reindex_id, updated_at)
      select file_id, ${run.targetIndexId}::integer, 'pending', ${run.id}::uuid, ${instant(at)} from page
      on conflict do nothing)
    select file_id from page order by file_id desc limit 1`)
  return last?.file_id ?? null
}

/**
 * Asks for what came since the pages were read, in a transaction that holds the collections; says how
 * many they were.
 */
export async function recruitRest(transaction: Transaction, run: Run, at: Date): Promise<number> {
  const added = await transaction.execute(sql`
    insert into ${fileIndex} (file_id, index_id, state, reindex_id, updated_at)
    select distinct member.file_id, ${run.targetIndexId}::integer, 'pending', ${run.id}::uuid, ${instant(at)}
    from collection_file member join file on file.node_id = member.file_id
    where member.collection_id = any(${uuidArray(run.collectionIds)})
      and not exists (select 1 from ${fileIndex} known
        where known.index_id = ${run.targetIndexId} and known.file_id = member.file_id)
    on conflict do nothing
    returning 1`)
  return added.length
}

/** Takes back what was asked for files that have left every collection of the reindex since. */
export async function forgetStrangers(transaction: Transaction, run: Run): Promise<void> {
  await transaction.execute(sql`
    delete from ${fileIndex} where index_id = ${run.targetIndexId} and not exists (
      select 1 from collection_file member
      where member.collection_id = any(${uuidArray(run.collectionIds)})
        and member.file_id = ${fileIndex.fileId})`)
}

/** Files of collections, each once. */
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

/** Those that wait to be brought, in the order of their ids, without the ones that were asked for. */
export async function findPending(
  handle: Handle,
  run: Run,
  {
    after,
    except,
    filesMax,
  }: { after: string | null; except: readonly string[]; filesMax: number },
): Promise<readonly string[]> {
  const rows = await handle.execute<{ id: string }>(sql`
    select ${fileIndex.fileId} as id from ${fileIndex}
    where ${isOf(run)} and ${fileIndex.state} = 'pending' and ${hasContent}
      and ${fileIndex.fileId} > ${after ?? noFile}::uuid
      and not ${fileIndex.fileId} = any(${uuidArray(except)})
    order by ${fileIndex.fileId} limit ${filesMax}`)
  return rows.map(({ id }) => id)
}

export async function isAnyPending(handle: Handle, run: Run): Promise<boolean> {
  return (await findPending(handle, run, { after: null, except: [], filesMax: 1 })).length > 0
}

export type Progress = {
  readonly id: string
  readonly state: 'pending' | 'done' | 'failed' | 'skipped'
  readonly attempts: number
  readonly error: string | null
  readonly updated_ms: number
}

/** How far these have come, who came there last at the end; what is gone is not among them. */
export async function readProgress(
  handle: Handle,
  run: Run,
  fileIds: readonly string[],
): Promise<readonly Progress[]> {
  return handle.execute<Progress>(sql`
    select file_id as id, state, attempts, error_code || ': ' || error_message as error,
      (extract(epoch from updated_at) * 1000)::float8 as updated_ms
    from ${fileIndex}
    where ${fileIndex.indexId} = ${aimOf(run)} and ${fileIndex.fileId} = any(${uuidArray(fileIds)})
      and ${hasContent}
    order by updated_at`)
}

export type Count = Pick<Counters, 'completed' | 'failed' | 'added'> & {
  readonly skipped: number
  readonly pending: number
  /** Came to an end within the last minute. */
  readonly recent: number
}

const rateMs = 60_000

/** What the target has of the files of the start, and what came besides. */
export async function countTarget(handle: Handle, run: Run, at: Date): Promise<Count> {
  const since = new Date(at.getTime() - rateMs)
  const own = sql`reindex_id = ${run.id}::uuid`
  const of = (state: string) => sql`(count(*) filter (where ${own} and state = ${state}))::integer`
  const [row] = await handle.execute<Count>(sql`
    select ${of('done')} as completed, ${of('failed')} as failed, ${of('skipped')} as skipped,
      ${of('pending')} as pending,
      (count(*) filter (where ${own} and state <> 'pending'
        and updated_at > ${instant(since)}))::integer as recent,
      (count(*) filter (where reindex_id is distinct from ${run.id}::uuid))::integer as added
    from ${fileIndex} where index_id = ${run.targetIndexId}`)
  return row ?? { completed: 0, failed: 0, skipped: 0, pending: 0, recent: 0, added: 0 }
}

/** At the most, and one more. */
export async function listFailures(
  handle: Handle,
  run: Run,
  page: PageRequest,
): Promise<readonly FailedFile[]> {
  const { where, order, isReversed } = keysetPage(sql`${fileIndex.fileId}`, page)
  const rows = await handle.execute<FailedFile>(sql`
    select ${fileIndex.fileId} as "fileId", node.name as filename,
      coalesce(error_code, 'internal_error') as code, coalesce(error_message, '') as message,
      attempts
    from ${fileIndex} join node on node.id = ${fileIndex.fileId}
    where ${isOf(run)} and state = 'failed' and ${where}
    order by ${fileIndex.fileId} ${order} limit ${page.limit + 1}`)
  return isReversed ? rows.toReversed() : rows
}

export async function retryFailed(transaction: Transaction, run: Run, at: Date): Promise<void> {
  await transaction.execute(sql`
    update ${fileIndex} set ${anew}, updated_at = ${instant(at)}
    where ${isOf(run)} and state = 'failed'`)
}

/** What a look at the index itself did not find there, whatever was written down. */
export async function failFiles(
  transaction: Transaction,
  run: Run,
  {
    fileIds,
    code,
    message,
    at,
  }: { fileIds: readonly string[]; code: string; message: string; at: Date },
): Promise<void> {
  await transaction.execute(sql`
    update ${fileIndex} set state = 'failed', error_code = ${code}, error_message = ${message},
      updated_at = ${instant(at)}
    where ${isOf(run)} and state = 'done' and file_id = any(${uuidArray(fileIds)})`)
}

/**
 * The next files of a collection that the source lacks: that are not there, there with an older
 * content, or failed there while the target has them. Gives where to go on, null at the end.
 */
export async function findLacking(
  handle: Handle,
  run: Run,
  { cursor, filesMax }: { cursor: Cursor; filesMax: number },
): Promise<{ fileIds: readonly string[]; after: string | null }> {
  const rows = await handle.execute<{ id: string; is_lacking: boolean }>(sql`
    select file.node_id as id, (
      source.file_id is null
      or (source.state = 'done' and source.sha256 is distinct from file.sha256)
      or (source.state in ('failed', 'skipped') and ${isCurrent('target')}
        and source.reindex_id is distinct from ${run.id}::uuid)) as is_lacking
    from ${bothSides(run)}
    where member.collection_id = ${cursor.collectionId}::uuid
      and member.file_id > ${cursor.after ?? noFile}::uuid
    order by member.file_id limit ${filesMax}`)
  const fileIds = rows.filter((row) => row.is_lacking).map(({ id }) => id)
  return { fileIds, after: rows.at(-1)?.id ?? null }
}

/** Asks for them in the source, as far as they are still members. */
export async function bringBack(
  transaction: Transaction,
  run: Run,
  { fileIds, at }: { fileIds: readonly string[]; at: Date },
): Promise<void> {
  await lockFiles(transaction, fileIds)
  await transaction.execute(sql`
    insert into ${fileIndex} as known (file_id, index_id, state, reindex_id, updated_at)
    select distinct file.node_id, ${run.sourceIndexId}::integer, 'pending', ${run.id}::uuid, ${instant(at)}
    from file join collection_file member on member.file_id = file.node_id
    where file.node_id = any(${uuidArray(fileIds)})
      and member.collection_id = any(${uuidArray(run.collectionIds)})
    on conflict (file_id, index_id) do update set ${anew}, reindex_id = excluded.reindex_id,
      updated_at = excluded.updated_at
      where known.state in ('failed', 'skipped') or (known.state = 'done'
        and known.sha256 is distinct from (select sha256 from file where node_id = known.file_id))`)
}

/**
 * Files that would be lost without the target: `waiting` for the source, or `refused`, since they
 * failed there as well.
 */
export async function findLosses(
  handle: Handle,
  run: Run,
): Promise<{ waiting: number; refused: number }> {
  const isRefused = sql`coalesce(source.state in ('failed', 'skipped')
    and source.reindex_id = ${run.id}::uuid, false)`
  const [row] = await handle.execute<{ waiting: number; refused: number }>(sql`
    select (count(distinct member.file_id) filter (where not ${isRefused}))::integer as waiting,
      (count(distinct member.file_id) filter (where ${isRefused}))::integer as refused
    from ${bothSides(run)}
    where member.collection_id = any(${uuidArray(run.collectionIds)}) and (
      source.file_id is null or (${isCurrent('target')} and not ${isCurrent('source')}))`)
  return row ?? { waiting: 0, refused: 0 }
}

function bothSides(run: Run): SQL {
  return sql`collection_file member
    join file on file.node_id = member.file_id
    left join file_index source
      on source.file_id = member.file_id and source.index_id = ${run.sourceIndexId}
    left join file_index target
      on target.file_id = member.file_id and target.index_id = ${run.targetIndexId}`
}

function isCurrent(side: 'source' | 'target'): SQL {
  const table = sql.raw(side)
  return sql`coalesce(${table}.state = 'done' and ${table}.sha256 = file.sha256, false)`
}
