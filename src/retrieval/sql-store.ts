import { type SQL, sql } from 'drizzle-orm'
import type { Database, Transaction } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { share } from '#db/schema/files.ts'
import { collection } from '#db/schema/retrieval.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { sqlStateOf } from '#lib/sql-state.ts'

/** SQL fragments that several stores share. */

const deadlock = '40P01'

export type QueryHandle = Pick<Transaction, 'execute' | 'select'>

/** Runs queries and transactions that may take up to `waitMaxMs`. */
export function createRunner({ drizzle }: Pick<Database, 'drizzle'>, waitMaxMs: number) {
  const runQuery = createQueryRunner(waitMaxMs)
  const transact = <T>(work: (transaction: Transaction) => Promise<T>): Promise<T> =>
    runQuery(() => drizzle.transaction(work))
  return {
    query: <T>(work: (handle: QueryHandle) => Promise<T>): Promise<T> =>
      runQuery(() => work(drizzle)),

    /** Changes of many files and of one file can deadlock; the database aborts one, which is retried. */
    transact: <T>(work: (transaction: Transaction) => Promise<T>): Promise<T> =>
      transact(work).catch((error: unknown) => {
        if (sqlStateOf(error) === deadlock) return transact(work)
        throw error
      }),
  }
}

export function uuidArray(ids: readonly string[]): SQL {
  return sql`${`{${ids.join(',')}}`}::uuid[]`
}

/** A `text[]`; texts with NUL, which PostgreSQL cannot store, are left out. */
export function textArray(texts: readonly string[]): SQL {
  const items = texts
    .filter((text) => !text.includes('\0'))
    .map((text) => `"${text.toWellFormed().replace(/["\\]/g, '\\$&')}"`)
  return sql`${`{${items.join(',')}}`}::text[]`
}

/** The last two arguments of the functions that decide about rights. */
export function callerArgs({ userId, groups }: RequestPrincipal): SQL {
  return sql`${userId}::uuid, ${textArray(groups)}`
}

/** The caller's rank on `collection`, 1 to 4; null where they may not see it. */
export function collectionRank(caller: RequestPrincipal): SQL {
  return sql`(
    case when ${collection.ownerId} = ${caller.userId}::uuid then 4 else (
      select max(${share.role}) from ${share}
      where ${share.resourceType} = 'collection' and ${share.resourceId} = ${collection.id}
        and is_granted_to(${share.principalType}, ${share.principalId}, ${callerArgs(caller)})) end)`
}

/** A row of `embedding_index` as the JSON text of a `CollectionIndex`; `null` without one. */
export function indexJson(alias: 'source' | 'target'): SQL {
  const table = sql.raw(alias)
  return sql`case when ${table}.id is null then 'null' else json_build_object('id', ${table}.id,
    'model', ${table}.model, 'dims', ${table}.dims, 'state', ${table}.state)::text end`
}

/** The time of the last use of `collection`, and the time at which it expires; null: never. */
export const lastActive = sql`greatest(collection.created_at, collection.last_active_at)`
export const expiry = sql`${lastActive} + make_interval(days => collection.expires_after_days)`

export function instant(at: Date): SQL {
  return sql`${at.toISOString()}::timestamptz`
}
