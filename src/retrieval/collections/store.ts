import { eq, type SQL, type SQLWrapper, sql } from 'drizzle-orm'
import type { Database, Transaction } from '#db/client.ts'
import { collection } from '#db/schema/retrieval.ts'
import { roleOfRank } from '#files/files.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import {
  collectionRank,
  expiry,
  indexJson,
  instant,
  lastActive,
  uuidArray,
} from '#retrieval/sql-store.ts'
import type {
  Collection,
  CollectionChange,
  NewCollection,
  Page,
  PageRequest,
} from './collections.ts'
import { findAccess } from './lookup-store.ts'

export type CollectionDatabase = Pick<Database, 'drizzle'>
export type Handle = Pick<Transaction, 'execute'>

export async function listCollections(
  handle: Handle,
  caller: RequestPrincipal,
  page: PageRequest,
): Promise<Page<Collection>> {
  const { items, hasMore } = await readPage(sql`collection.id`, page, (where, orderBy, limit) =>
    handle.execute<CollectionViewRow>(sql`
      ${selectCollections(caller)} and ${where} order by ${orderBy} limit ${limit}`),
  )
  return { items: items.map(collectionOf), hasMore }
}

/**
 * Reads a page of rows by their UUIDs in `column`. A page before an item is read in reverse order.
 */
export async function readPage<T>(
  column: SQL | SQLWrapper,
  { limit, order, after, before }: PageRequest,
  read: (where: SQL, orderBy: SQL, limit: number) => PromiseLike<readonly T[]>,
): Promise<Page<T>> {
  const isReversed = before !== null
  const isDescending = (order === 'desc') !== isReversed
  const cursor = before ?? after
  const where =
    cursor === null
      ? sql`true`
      : sql`${column} ${sql.raw(isDescending ? '<' : '>')} ${cursor}::uuid`
  const direction = sql.raw(isDescending ? 'desc' : 'asc')
  const rows = await read(where, sql`${column} ${direction}`, limit + 1)
  const items = rows.slice(0, limit)
  return { items: isReversed ? items.toReversed() : items, hasMore: rows.length > limit }
}

/** By id, `owner/name` or name; see `lookup-store.ts`. */
export async function readCollection(
  handle: Handle,
  caller: RequestPrincipal,
  reference: string,
): Promise<Collection | undefined> {
  const id = isUuid(reference) ? reference : (await findAccess(handle, caller, reference))?.id
  if (id === undefined) return undefined
  const [row] = await handle.execute<CollectionViewRow>(
    sql`${selectCollections(caller)} and collection.id = ${id}::uuid`,
  )
  return row && collectionOf(row)
}

/** Prevents changes until the end of the transaction, including those of a reindex. */
export async function lockCollection(
  transaction: Transaction,
  id: string,
  mode: 'shared' | 'exclusive',
): Promise<boolean> {
  const rows = await transaction.execute(sql`
    select 1 from ${collection} where id = ${id}::uuid
    for ${sql.raw(mode === 'shared' ? 'share' : 'update')}`)
  return rows.length > 0
}

/** Throws a unique violation if the owner has a collection of this name. */
export async function insertCollection(
  transaction: Transaction,
  row: NewCollection & Pick<Collection, 'id' | 'ownerId'> & { indexId: number; at: Date },
  ownedMax: number,
): Promise<'added' | 'too_many' | 'index_dropped'> {
  const lock = `collections of ${row.ownerId}`
  await transaction.execute(sql`select pg_advisory_xact_lock(hashtextextended(${lock}, 0))`)
  const [owned] = await transaction.execute<{ count: number }>(sql`
    select count(*)::integer as count from ${collection} where owner_id = ${row.ownerId}::uuid`)
  if ((owned?.count ?? 0) >= ownedMax) return 'too_many'
  // A reindex that completes now may drop the index.
  const added = await transaction.execute(sql`
    with held as (select id from embedding_index
      where id = ${row.indexId} and state = 'active' for share)
    insert into ${collection} (id, name, title, description, metadata, owner_id, access_mode,
      folder_id, expires_after_days, index_id, created_at, updated_at)
    select ${row.id}::uuid, ${row.name}, ${row.title}, ${row.description},
      ${JSON.stringify(row.metadata)}, ${row.ownerId}::uuid, ${row.accessMode},
      ${row.folderId}::uuid, ${row.expiresAfterDays ?? null}::integer, held.id, ${instant(row.at)},
      ${instant(row.at)}
    from held returning 1`)
  return added.length > 0 ? 'added' : 'index_dropped'
}

/** Absent fields stay unchanged. */
export async function writeCollection(
  transaction: Transaction,
  id: string,
  { metadata, ...change }: CollectionChange & { folderSharedBy?: string; updatedAt: Date },
): Promise<void> {
  await transaction
    .update(collection)
    .set({ ...change, ...(metadata && { metadata: JSON.stringify(metadata) }) })
    .where(eq(collection.id, id))
}

export async function deleteCollection(transaction: Transaction, id: string): Promise<void> {
  await transaction.execute(sql`
    delete from share where resource_type = 'collection' and resource_id = ${id}::uuid`)
  await transaction.execute(sql`delete from ${collection} where id = ${id}::uuid`)
}

/** Expired collections that still have files. */
export async function findExpired(handle: Handle, max: number): Promise<readonly string[]> {
  const rows = await handle.execute<{ id: string }>(sql`
    select id from ${collection}
    where expires_after_days is not null and ${expiry} <= now() and (folder_id is not null
      or exists (select 1 from collection_file held where held.collection_id = collection.id))
    limit ${max}`)
  return rows.map(({ id }) => id)
}

/** Whether it still is expired; locks it, and ends its link to a folder. */
export async function closeExpired(transaction: Transaction, id: string): Promise<boolean> {
  const rows = await transaction.execute(sql`
    update ${collection} set folder_id = null
    where id = ${id}::uuid and expires_after_days is not null and ${expiry} <= now()
    returning 1`)
  return rows.length > 0
}

/** Postpones the expiry of used collections, about once a minute. */
export async function touchCollections(handle: Handle, ids: readonly string[]): Promise<void> {
  await handle.execute(sql`
    update ${collection} set last_active_at = now()
    where id = any(${uuidArray(ids)}) and expires_after_days is not null
      and ${expiry} > now() and ${lastActive} < now() - interval '1 minute'`)
}

/** Lets everyone search a collection, or ends that. */
export async function shareWithEveryone(
  transaction: Transaction,
  id: string,
  { isShared, by, at }: { isShared: boolean; by: string; at: Date },
): Promise<void> {
  await transaction.execute(
    isShared
      ? sql`
        insert into share (id, resource_type, resource_id, principal_type, principal_id, role,
          granted_by, created_at)
        values (${Bun.randomUUIDv7()}::uuid, 'collection', ${id}::uuid, 'everyone', '*', 1,
          ${by}::uuid, ${instant(at)})
        on conflict (resource_type, resource_id, principal_type, principal_id) do nothing`
      : sql`delete from share where resource_type = 'collection' and resource_id = ${id}::uuid`,
  )
}

/** Nested objects are JSON; times are numbers, since their text form varies between drivers. */
type CollectionViewRow = Omit<
  Collection,
  NestedField | 'bytes' | 'createdAt' | 'updatedAt' | 'expiresAt' | 'lastActiveAt' | 'role'
> &
  Record<NestedField, string> & {
    createdMs: number
    updatedMs: number
    expiresMs: number | null
    lastActiveMs: number
    rank: number
  }

type NestedField = 'metadata' | 'index' | 'target' | 'chunking' | 'counts'

/** Callers append further conditions. */
function selectCollections(caller: RequestPrincipal): SQL {
  return sql`
    select collection.id, collection.name, collection.title, collection.description,
      collection.metadata, collection.owner_id as "ownerId", app_user.subject as "ownerName",
      collection.access_mode as "accessMode", collection.folder_id as "folderId",
      json_build_object('tokensMax', source.chunk_tokens_max,
        'overlapTokens', source.chunk_overlap_tokens)::text as chunking,
      ${indexJson('source')} as index, ${indexJson('target')} as target,
      row_to_json(counts)::text as counts,
      collection.expires_after_days as "expiresAfterDays",
      (extract(epoch from ${expiry}) * 1000)::float8 as "expiresMs",
      coalesce(${expiry} <= now(), false) as "isExpired",
      (extract(epoch from greatest(${lastActive}, collection.updated_at)) * 1000)::float8
        as "lastActiveMs",
      (extract(epoch from collection.created_at) * 1000)::float8 as "createdMs",
      (extract(epoch from collection.updated_at) * 1000)::float8 as "updatedMs",
      ${collectionRank(caller)} as rank
    from ${collection}
    join embedding_index source on source.id = collection.index_id
    left join embedding_index target on target.id = collection.target_index_id
    left join app_user on app_user.id = collection.owner_id
    cross join lateral (
      select ${countsByState}, coalesce(sum(file.bytes), 0) as bytes
      from collection_file_state progress
      join node on node.id = progress.file_id and node.trashed_at is null
      join file on file.node_id = node.id
      where progress.collection_id = collection.id) counts
    where ${collectionRank(caller)} is not null`
}

/** The columns of `FileCounts`. */
export const countsByState = sql`count(*)::integer as total,
  (count(*) filter (where state = 'done'))::integer as completed,
  (count(*) filter (where state = 'pending'))::integer as "inProgress",
  (count(*) filter (where state in ('failed', 'skipped')))::integer as failed`

function collectionOf({
  createdMs,
  updatedMs,
  expiresMs,
  lastActiveMs,
  rank,
  ...row
}: CollectionViewRow): Collection {
  const { bytes, ...counts } = JSON.parse(row.counts)
  return {
    ...row,
    metadata: JSON.parse(row.metadata),
    index: JSON.parse(row.index),
    target: JSON.parse(row.target),
    chunking: JSON.parse(row.chunking),
    counts,
    bytes,
    expiresAt: expiresMs === null ? null : new Date(expiresMs),
    lastActiveAt: new Date(lastActiveMs),
    createdAt: new Date(createdMs),
    updatedAt: new Date(updatedMs),
    role: roleOfRank(rank),
  }
}
