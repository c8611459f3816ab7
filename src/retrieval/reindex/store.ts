import { and, desc, eq, inArray, ne, or, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { embeddingIndex, reindex } from '#db/schema/retrieval.ts'
import type { Transaction } from '#jobs/jobs.ts'
import { sqlStateOf } from '#lib/sql-state.ts'
import type { PageRequest } from '#retrieval/collections/collections.ts'
import { keysetPage } from '#retrieval/collections/store.ts'
import type { IndexSpec } from '#retrieval/index/chunk.ts'
import type { IndexDatabase } from '#retrieval/index/store.ts'
import { type Counters, openStatuses, type ReindexStatus } from './reindex.ts'

export type ReindexDatabase = IndexDatabase & Pick<Database, 'listen' | 'notifyOnCommit'>
export type Handle = Pick<Transaction, 'execute' | 'select'>

/** What is known of a reindex beside its files. */
export type Run = Readonly<Omit<Row, keyof Texts>> & Texts

type Texts = {
  readonly sourceSpec: IndexSpec
  readonly targetSpec: IndexSpec
  readonly collectionIds: readonly string[]
  readonly endCounters: Counters | null
}

type Row = typeof reindex.$inferSelect

export type RunChange = Partial<
  Pick<
    Run,
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

/** Taking a turn looks at all files of a collection. */
const waitMaxMs = 60_000
const deadlock = '40P01'

export function runStore({ drizzle }: Pick<Database, 'drizzle'>) {
  const ask = createQueryRunner(waitMaxMs)
  const transact = <T>(work: (transaction: Transaction) => Promise<T>): Promise<T> =>
    ask(() => drizzle.transaction(work))
  return {
    ask: <T>(question: (handle: Database['drizzle']) => Promise<T>): Promise<T> =>
      ask(() => question(drizzle)),

    /** Who changes files and who takes a turn may wait for each other; the database ends one. */
    transact: <T>(work: (transaction: Transaction) => Promise<T>): Promise<T> =>
      transact(work).catch((error: unknown) => {
        if (sqlStateOf(error) === deadlock) return transact(work)
        throw error
      }),

    list: (page: PageRequest, status: ReindexStatus | null): Promise<readonly Run[]> =>
      ask(async () => {
        const { where, isReversed } = keysetPage(sql`${reindex.id}`, page)
        const isDescending = (page.order === 'desc') !== isReversed
        const rows = await drizzle
          .select()
          .from(reindex)
          .where(and(where, status === null ? undefined : eq(reindex.status, status)))
          .orderBy(isDescending ? desc(reindex.id) : reindex.id)
          .limit(page.limit + 1)
        const runs = rows.map(runOf)
        return isReversed ? runs.toReversed() : runs
      }),
  }
}

export async function readRun(handle: Handle, id: string): Promise<Run | undefined> {
  const [row] = await handle.select().from(reindex).where(eq(reindex.id, id))
  return row === undefined ? undefined : runOf(row)
}

/** Nobody else changes its course until the end of the transaction. It comes before other locks. */
export async function lockRun(transaction: Transaction, id: string): Promise<Run | undefined> {
  const [row] = await transaction.select().from(reindex).where(eq(reindex.id, id)).for('update')
  return row === undefined ? undefined : runOf(row)
}

export async function insertRun(
  transaction: Transaction,
  run: Omit<Run, 'version' | 'accepted' | 'endCounters' | 'lastError' | keyof Ends>,
): Promise<void> {
  await transaction.insert(reindex).values({
    ...run,
    sourceSpec: JSON.stringify(run.sourceSpec),
    targetSpec: JSON.stringify(run.targetSpec),
    collectionIds: JSON.stringify(run.collectionIds),
  })
}

type Ends = Pick<Run, 'startedAt' | 'finishedAt' | 'warmUntil'>

export async function changeRun(
  transaction: Transaction,
  id: string,
  { endCounters, ...change }: RunChange,
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

/** Whoever begins a reindex, or goes back by one, comes after who does so already. */
export async function lockBeginnings(transaction: Transaction): Promise<void> {
  await transaction.execute(
    sql`select pg_advisory_xact_lock(hashtextextended('a reindex begins', 0))`,
  )
}

/** Whether collections are on their way from or to this index. */
export async function isUnderWay(
  handle: Handle,
  indexId: number,
  exceptId: string | null,
): Promise<boolean> {
  const rows = await handle
    .select({ id: reindex.id })
    .from(reindex)
    .where(
      and(
        inArray(reindex.status, openStatuses),
        or(eq(reindex.sourceIndexId, indexId), eq(reindex.targetIndexId, indexId)),
        exceptId === null ? undefined : ne(reindex.id, exceptId),
      ),
    )
    .limit(1)
  return rows.length > 0
}

/** Whether another reindex may still go back to this index. */
export async function isKeptByOthers(
  handle: Handle,
  indexId: number,
  exceptId: string,
): Promise<boolean> {
  const rows = await handle
    .select({ id: reindex.id })
    .from(reindex)
    .where(
      and(
        eq(reindex.sourceIndexId, indexId),
        ne(reindex.id, exceptId),
        or(sql`${reindex.warmUntil} is not null`, inArray(reindex.status, openStatuses)),
      ),
    )
    .limit(1)
  return rows.length > 0
}

export type IndexState = (typeof embeddingIndex.$inferSelect)['state']

/** The lock of who may use an index; undefined where it is gone. */
export async function lockIndex(
  transaction: Transaction,
  id: number,
): Promise<IndexState | undefined> {
  const [row] = await transaction
    .select({ state: embeddingIndex.state })
    .from(embeddingIndex)
    .where(eq(embeddingIndex.id, id))
    .for('update')
  return row?.state
}

export async function findIndexState(handle: Handle, id: number): Promise<IndexState | undefined> {
  const [row] = await handle
    .select({ state: embeddingIndex.state })
    .from(embeddingIndex)
    .where(eq(embeddingIndex.id, id))
  return row?.state
}

export async function changeIndex(
  transaction: Transaction,
  id: number,
  change: { state: IndexState; warmUntil: Date | null },
): Promise<void> {
  await transaction.update(embeddingIndex).set(change).where(eq(embeddingIndex.id, id))
}

function runOf({ sourceSpec, targetSpec, collectionIds, endCounters, ...row }: Row): Run {
  return {
    ...row,
    sourceSpec: JSON.parse(sourceSpec),
    targetSpec: JSON.parse(targetSpec),
    collectionIds: JSON.parse(collectionIds),
    endCounters: endCounters === null ? null : JSON.parse(endCounters),
  }
}
