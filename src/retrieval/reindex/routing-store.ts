import { sql } from 'drizzle-orm'
import type { Transaction } from '#db/client.ts'
import { collection, embeddingIndex } from '#db/schema/retrieval.ts'
import type { IndexSpec } from '#retrieval/index/chunk.ts'
import { instant, uuidArray } from '#retrieval/sql-store.ts'
import { type Handle, lockIndex, type ReindexState, updateIndex } from './store.ts'

/** The indexes in which collections are searched, and which receive their new files. */

/** A collection and its index. */
export type RoutedCollection = IndexSpec & {
  readonly id: string
  readonly name: string
  readonly indexId: number
  readonly targetIndexId: number | null
}

/** Null: all collections. */
export async function findCollections(
  handle: Handle,
  ids: readonly string[] | null,
): Promise<readonly RoutedCollection[]> {
  const where = ids === null ? sql`true` : sql`collection.id = any(${uuidArray(ids)})`
  return handle.execute<RoutedCollection>(sql`
    select collection.id, collection.name, collection.index_id as "indexId",
      collection.target_index_id as "targetIndexId", source.model, source.dims,
      source.chunk_tokens_max as "chunkTokensMax",
      source.chunk_overlap_tokens as "chunkOverlapTokens",
      source.part_tokens_max as "partTokensMax"
    from ${collection} join ${embeddingIndex} source on source.id = collection.index_id
    where ${where} order by collection.name`)
}

type Collections = Pick<ReindexState, 'collectionIds'>

/** Excludes additions of files and changes of routing; returns the collections that still exist. */
export async function lockCollections(
  transaction: Transaction,
  { collectionIds }: Collections,
): Promise<readonly { id: string; index_id: number }[]> {
  return transaction.execute<{ id: string; index_id: number }>(sql`
    select id, index_id from ${collection}
    where id = any(${uuidArray(collectionIds)}) order by id for update`)
}

type Routing = { readonly indexId: number; readonly targetIndexId: number | null }

/** Changes the routing of those collections that are still routed `from`; returns their ids. */
export async function reroute(
  transaction: Transaction,
  { collectionIds }: Collections,
  { from, to }: { from: Routing; to: Routing },
): Promise<readonly string[]> {
  const rows = await transaction.execute<{ id: string }>(sql`
    update ${collection} set index_id = ${to.indexId}, target_index_id = ${to.targetIndexId}::integer
    where id = any(${uuidArray(collectionIds)}) and index_id = ${from.indexId}
      and target_index_id is not distinct from ${from.targetIndexId}::integer
    returning id`)
  return rows.map((row) => row.id)
}

/** Whether a collection of the reindex is searched in the index. */
export async function isSearched(
  handle: Handle,
  { collectionIds }: Collections,
  indexId: number,
): Promise<boolean> {
  const rows = await handle.execute(sql`
    select 1 from ${collection}
    where index_id = ${indexId} and id = any(${uuidArray(collectionIds)}) limit 1`)
  return rows.length > 0
}

/** Locks the index against new collections; whether it exists and no collection uses it. */
export async function lockIfUnused(transaction: Transaction, indexId: number): Promise<boolean> {
  if ((await lockIndex(transaction, indexId)) === undefined) return false
  const rows = await transaction.execute(sql`
    select 1 from ${collection} where ${indexId} in (index_id, target_index_id) limit 1`)
  return rows.length === 0
}

/**
 * Starts the move back: both indexes are searched, and the source receives new files. Files that
 * changed since are removed from the source at once, since the target has their present content.
 */
export async function reverseRouting(
  transaction: Transaction,
  reindex: ReindexState,
  { from, at }: { from: Routing; at: Date },
): Promise<void> {
  const { sourceIndexId, targetIndexId } = reindex
  const to = { indexId: targetIndexId, targetIndexId: sourceIndexId }
  const ids = await reroute(transaction, reindex, { from, to })
  await transaction.execute(sql`
    update file_index known set state = 'pending', stage = 'waiting', attempts = 0,
      error_code = null, error_message = null, reindex_id = ${reindex.id}::uuid,
      updated_at = ${instant(at)}
    from file
    where known.index_id = ${sourceIndexId} and known.state = 'done'
      and file.node_id = known.file_id and known.sha256 is distinct from file.sha256
      and known.file_id in (
        select file_id from collection_file where collection_id = any(${uuidArray(ids)}))`)
  await updateIndex(transaction, sourceIndexId, { state: 'active', warmUntil: null })
  // New collections may use the target since the reindex was completed.
  if ((await lockIndex(transaction, targetIndexId)) === undefined) return
  const others = await transaction.execute(sql`
    select 1 from ${collection}
    where ${targetIndexId} in (index_id, target_index_id)
      and not id = any(${uuidArray(reindex.collectionIds)})
    limit 1`)
  if (others.length > 0) return
  await updateIndex(transaction, targetIndexId, { state: 'dropping', warmUntil: null })
}
