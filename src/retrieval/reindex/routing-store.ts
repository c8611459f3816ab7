import { type SQL, sql } from 'drizzle-orm'
import { collection, embeddingIndex } from '#db/schema/retrieval.ts'
import type { Transaction } from '#jobs/jobs.ts'
import { isUuid } from '#lib/uuid.ts'
import { changeIndex, type Handle, lockIndex, type Run } from '#retrieval/reindex/store.ts'
import { textArray, uuidArray } from '#retrieval/sql-store.ts'

/** Which index the collections of a reindex are searched in, and which one their new files go to. */

/** A collection as a reindex sees it. */
export type Place = {
  readonly id: string
  readonly name: string
  readonly index_id: number
  readonly target_index_id: number | null
  readonly model: string
  readonly dims: number
  readonly chunk_tokens_max: number
  readonly chunk_overlap_tokens: number
}

/** By names or ids; null: all. */
export async function findPlaces(
  handle: Handle,
  named: readonly string[] | null,
): Promise<readonly Place[]> {
  const which =
    named === null
      ? sql`true`
      : sql`(collection.name = any(${textArray(named)})
          or collection.id = any(${uuidArray(named.filter(isUuid))}))`
  return handle.execute<Place>(sql`
    select collection.id, collection.name, collection.index_id, collection.target_index_id,
      source.model, source.dims, source.chunk_tokens_max, source.chunk_overlap_tokens
    from ${collection} join ${embeddingIndex} source on source.id = collection.index_id
    where ${which} order by collection.name`)
}

/** Holds those that there still are: no file comes into them, or is routed, until the end. */
export async function lockPlaces(
  transaction: Transaction,
  run: Pick<Run, 'collectionIds'>,
): Promise<readonly Pick<Place, 'id' | 'index_id' | 'target_index_id'>[]> {
  return transaction.execute<Pick<Place, 'id' | 'index_id' | 'target_index_id'>>(sql`
    select id, index_id, target_index_id from ${collection}
    where id = any(${uuidArray(run.collectionIds)}) order by id for update`)
}

/** Sets where those of these collections that stand at `from` are searched, and filled. */
export async function route(
  transaction: Transaction,
  run: Pick<Run, 'collectionIds'>,
  { from, to }: { from: Routing; to: Routing },
): Promise<readonly string[]> {
  const rows = await transaction.execute<{ id: string }>(sql`
    update ${collection} set index_id = ${to.indexId}, target_index_id = ${to.targetIndexId}::integer
    where id = any(${uuidArray(run.collectionIds)}) and index_id = ${from.indexId}
      and target_index_id is not distinct from ${from.targetIndexId}::integer
    returning id`)
  return rows.map((row) => row.id)
}

type Routing = { readonly indexId: number; readonly targetIndexId: number | null }

/** Whether a collection of a reindex is searched in an index. */
export async function isUsedBy(
  handle: Handle,
  run: Pick<Run, 'collectionIds'>,
  indexId: number,
): Promise<boolean> {
  const rows = await handle.execute(sql`
    select 1 from ${collection}
    where index_id = ${indexId} and id = any(${uuidArray(run.collectionIds)}) limit 1`)
  return rows.length > 0
}

/** Whether any collection is searched in an index, or filled there. */
async function isUsed(handle: Handle, indexId: number): Promise<boolean> {
  const rows = await handle.execute(sql`
    select 1 from ${collection} where ${indexId} in (index_id, target_index_id) limit 1`)
  return rows.length > 0
}

/** The same after who makes a collection on it just now has come to an end. */
export async function lockUse(
  transaction: Transaction,
  indexId: number,
): Promise<'used' | 'unused' | 'gone'> {
  if ((await lockIndex(transaction, indexId)) === undefined) return 'gone'
  return (await isUsed(transaction, indexId)) ? 'used' : 'unused'
}

/**
 * From here on the files of these collections go back: searched in both indexes, filled in the source.
 * What the source has of an older content gives way to what the target has, in the same moment.
 */
export async function turnBack(
  transaction: Transaction,
  run: Run,
  { from, at }: { from: Routing; at: Date },
): Promise<void> {
  const { sourceIndexId, targetIndexId } = run
  const to = { indexId: targetIndexId, targetIndexId: sourceIndexId }
  const ids = await route(transaction, run, { from, to })
  await transaction.execute(sql`
    update file_index known set state = 'pending', stage = 'waiting', attempts = 0,
      error_code = null, error_message = null, reindex_id = ${run.id}::uuid,
      updated_at = ${instant(at)}
    from file
    where known.index_id = ${sourceIndexId} and known.state = 'done'
      and file.node_id = known.file_id and known.sha256 is distinct from file.sha256
      and known.file_id in (
        select file_id from collection_file where collection_id = any(${uuidArray(ids)}))`)
  await changeIndex(transaction, sourceIndexId, { state: 'active', warmUntil: null })
  // Others may have come to the target after it was all that there was.
  if ((await lockIndex(transaction, targetIndexId)) === undefined) return
  const others = await transaction.execute(sql`
    select 1 from ${collection}
    where ${targetIndexId} in (index_id, target_index_id)
      and not id = any(${uuidArray(run.collectionIds)})
    limit 1`)
  if (others.length > 0) return
  await changeIndex(transaction, targetIndexId, { state: 'dropping', warmUntil: null })
}

export function instant(at: Date): SQL {
  return sql`${at.toISOString()}::timestamptz`
}
