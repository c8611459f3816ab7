import { databaseUnavailable } from '#lib/errors.ts'
import { isDatabaseOutage } from '#lib/sql-state.ts'
import { withTimeLimit } from '#lib/time-limit.ts'

/** Runs a query on the path of a request; fails fast with `service_unavailable`. */
export type QueryRunner = <T>(query: () => Promise<T>) => Promise<T>

/** The database is unreachable, overloaded or slow; the query itself is valid. */
class DatabaseUnavailableError extends Error {
  override readonly name = 'DatabaseUnavailableError'
}

/** The same for every request of a process. */
let requestWaitMs = 2_000

/** Sets how long requests wait for a query, before the first one. */
export function setRequestWait(ms: number): void {
  requestWaitMs = ms
}

/** Of all query runners of this process. */
const counts = { pending: 0, unavailable: 0 }

/** Queries of requests in progress, and those that failed with `service_unavailable` so far. */
export const queryCounts = (): Readonly<typeof counts> => counts

/** After a failure, queries fail at once for this long; the client would queue them without limit. */
const openMs = 1_000
const pendingMax = 1_000

/**
 * A circuit breaker, so that requests stay short during a database outage. `workWaitMs` is for queries
 * that may take longer than others.
 */
export function createQueryRunner(workWaitMs?: number): QueryRunner {
  let pending = 0
  let openUntil = Number.NEGATIVE_INFINITY

  /** A query stays pending until it ends, also after its timeout. */
  async function counted<T>(query: () => Promise<T>): Promise<T> {
    pending += 1
    counts.pending += 1
    try {
      return await query()
    } finally {
      pending -= 1
      counts.pending -= 1
    }
  }
  async function run<T>(query: () => Promise<T>): Promise<T> {
    if (performance.now() < openUntil) {
      throw new DatabaseUnavailableError('the database failed a moment ago')
    }
    if (pending >= pendingMax) {
      throw new DatabaseUnavailableError(`${pendingMax} database queries are pending`)
    }
    const timeoutMs = workWaitMs ?? requestWaitMs
    try {
      return await withTimeLimit(counted(query), timeoutMs, () => {
        return new DatabaseUnavailableError(`no response within ${timeoutMs} ms`)
      })
    } catch (error) {
      if (!isUnavailability(error)) throw error
      openUntil = performance.now() + openMs
      throw new DatabaseUnavailableError('the database is unavailable', { cause: error })
    }
  }
  return async (query) => {
    try {
      return await run(query)
    } catch (cause) {
      if (!(cause instanceof DatabaseUnavailableError)) throw cause
      counts.unavailable += 1
      throw databaseUnavailable(cause)
    }
  }
}

function isUnavailability(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof DatabaseUnavailableError || isDatabaseOutage(error)) return true
  if (error.name === 'PostgresError') return false
  // Errors with a code that PostgreSQL did not send come from the connection or its client.
  if ('code' in error && typeof error.code === 'string') return true
  return isUnavailability(error.cause)
}
