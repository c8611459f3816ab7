import { and, eq, inArray, ne, or, type SQL, sql } from 'drizzle-orm'
import type { Database, Transaction } from '#db/client.ts'
import { embeddingIndex, reindex } from '#db/schema/retrieval.ts'
import type { Page, PageRequest } from '#retrieval/collections/collections.ts'
import { readPage } from '#retrieval/collections/store.ts'
import type { IndexSpec } from '#retrieval/index/chunk.ts'
import type { IndexDatabase } from '#retrieval/index/store.ts'
import { createRunner, type QueryHandle } from '#retrieval/sql-store.ts'
import { type Counters, openStatuses, type ReindexStatus } from './reindex.ts'

export type ReindexDatabase = IndexDatabase & Pick<Database, 'listen' | 'notifyOnCommit'>
export type Handle = QueryHandle

/** The row of a reindex; its files are rows of `file_index`. */
export type ReindexState = Readonly<Omit<Row, keyof ParsedColumns>> & ParsedColumns

type ParsedColumns = {
  readonly sourceSpec: IndexSpec
  readonly targetSpec: IndexSpec
  readonly collectionIds: readonly string[]
  readonly endCounters: Counters | null
}

type Row = typeof reindex.$inferSelect

export type ReindexChange = Partial<
  Pick<
    ReindexState,
    | 'status'
    | 'total'
    | 'accepted'
    | 'endCounters'
    | 'lastError'
    | 'startedAt'
    | 'finishedAt'
    | 'warmUntil'
  >
>

/** Changes of routing check all files of a collection. */
const waitMaxMs = 60_000

export type ReindexStore = ReturnType<typeof createRunner>

export function reindexStore(database: Pick<Database, 'drizzle'>): ReindexStore {
  return createRunner(database, waitMaxMs)
}

export async function listReindexes(
  handle: Handle,
  page: PageRequest,
  status: ReindexStatus | null,
): Promise<Page<ReindexState>> {
  const { items, hasMore } = await readPage(reindex.id, page, (where, orderBy, limit) => {
    const hasStatus = status === null ? undefined : eq(reindex.status, status)
    const matching = handle.select().from(reindex).where(and(where, hasStatus))
    return matching.orderBy(orderBy).limit(limit)
  })
  return { items: items.map(stateOf), hasMore }
}

export async function findReindex(handle: Handle, id: string): Promise<ReindexState | undefined> {
  const [row] = await handle.select().from(reindex).where(eq(reindex.id, id))
  return row && stateOf(row)
}

/** Excludes other changes of the reindex. Taken before all other locks. */
export async function lockReindex(
  transaction: Transaction,
  id: string,
): Promise<ReindexState | undefined> {
  const [row] = await transaction.select().from(reindex).where(eq(reindex.id, id)).for('update')
  return row && stateOf(row)
}

export async function insertReindex(
  transaction: Transaction,
  row: Omit<
    ReindexState,
    'version' | 'accepted' | 'endCounters' | 'lastError' | 'startedAt' | 'finishedAt' | 'warmUntil'
  >,
): Promise<void> {
  await transaction.insert(reindex).values({
    ...row,
    sourceSpec: JSON.stringify(row.sourceSpec),
    targetSpec: JSON.stringify(row.targetSpec),
    collectionIds: JSON.stringify(row.collectionIds),
  })
}

export async function updateReindex(
  transaction: Transaction,
  id: string,
  { endCounters, ...change }: ReindexChange,
  at: Date,
): Promise<void> {
  await transaction
    .update(reindex)
    .set({
      ...change,
      ...(endCounters === undefined ? {} : { endCounters: JSON.stringify(endCounters) }),
      version: sql`${reindex.version} + 1`,
      updatedAt: at,
    })
    .where(eq(reindex.id, id))
}

/** Serializes starts and reverts of reindexes. */
export async function lockStarts(transaction: Transaction): Promise<void> {
  await transaction.execute(
    sql`select pg_advisory_xact_lock(hashtextextended('a reindex begins', 0))`,
  )
}

/** Whether another reindex is moving collections from or to this index. */
export function isIndexBusy(
  handle: Handle,
  indexId: number,
  exceptId: string | null,
): Promise<boolean> {
  return hasReindex(
    handle,
    inArray(reindex.status, openStatuses),
    or(eq(reindex.sourceIndexId, indexId), eq(reindex.targetIndexId, indexId)),
    exceptId === null ? undefined : ne(reindex.id, exceptId),
  )
}

/** Whether another reindex may still be reverted to this index. */
export function isRetainedByOthers(
  handle: Handle,
  indexId: number,
  exceptId: string,
): Promise<boolean> {
  return hasReindex(
    handle,
    eq(reindex.sourceIndexId, indexId),
    ne(reindex.id, exceptId),
    or(sql`${reindex.warmUntil} is not null`, inArray(reindex.status, openStatuses)),
  )
}

async function hasReindex(handle: Handle, ...conditions: (SQL | undefined)[]): Promise<boolean> {
  const where = and(...conditions)
  const rows = await handle.select({ id: reindex.id }).from(reindex).where(where).limit(1)
  return rows.length > 0
}

export type IndexState = (typeof embeddingIndex.$inferSelect)['state']

/** Undefined if the index was dropped. */
export async function findIndexState(handle: Handle, id: number): Promise<IndexState | undefined> {
  return (await selectIndexState(handle, id))[0]?.state
}

/** Excludes new users of the index; undefined if it was dropped. */
export async function lockIndex(
  transaction: Transaction,
  id: number,
): Promise<IndexState | undefined> {
  return (await selectIndexState(transaction, id).for('update'))[0]?.state
}

function selectIndexState(handle: Handle, id: number) {
  const { state } = embeddingIndex
  return handle.select({ state }).from(embeddingIndex).where(eq(embeddingIndex.id, id))
}

export async function updateIndex(
  transaction: Transaction,
  id: number,
  change: { state: IndexState; warmUntil: Date | null },
): Promise<void> {
  await transaction.update(embeddingIndex).set(change).where(eq(embeddingIndex.id, id))
}

function stateOf({ sourceSpec, targetSpec, collectionIds, endCounters, ...row }: Row) {
  return {
    ...row,
    sourceSpec: JSON.parse(sourceSpec),
    targetSpec: JSON.parse(targetSpec),
    collectionIds: JSON.parse(collectionIds),
    endCounters: endCounters === null ? null : JSON.parse(endCounters),
  } satisfies ReindexState
}
