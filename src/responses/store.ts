import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { response, responseItem, responseLog } from '#db/schema/responses.ts'
import { backgroundTables } from './background-store.ts'
import { chainTables } from './chain-store.ts'
import { writeJournal } from './journal-store.ts'
import type { ResponseStatus } from './response.ts'
import { createSweep } from './retention-store.ts'
import { idRows, isKept, keyOf, lastInLog, readObject, type StoreOptions } from './row-store.ts'
import type { FoundResponse, JournalWork, LogProgress, LogSegment } from './stored.ts'

export type ResponseStore = ReturnType<typeof createResponseStore>

const segmentsPerReadMax = 1_000

/**
 * The tables of stored responses. Methods of clients take the owner: a response of another owner
 * does not exist for them, and an unavailable database fails fast with `service_unavailable`.
 * Methods of background work wait for the database.
 */
export function createResponseStore(
  database: Pick<Database, 'drizzle' | 'executePrepared' | 'kind'>,
  options: StoreOptions,
) {
  const { drizzle } = database
  const { now } = options
  const runQuery = createQueryRunner()
  return {
    find: (ownerId: string, id: string) =>
      runQuery(async (): Promise<FoundResponse | undefined> => {
        const [row] = await drizzle.execute<FoundRow>(sql`
          select response.object, response.status, response.runner_id, response.background,
            ${lastInLog} as last,
            (response.log_expires_at > ${now().toISOString()}::timestamptz) is not true as is_log_expired,
            (select '[' || coalesce(string_agg(item.json, ',' order by item.position), '') || ']'
              from ${responseItem} as item
              where item.response_id = response.id and item.direction = 'output') as output
          from ${response}
          where id = ${keyOf(id)} and owner_id = ${ownerId}::uuid and ${isKept(now())}`)
        if (row === undefined) return undefined
        const { background, runner_id: runnerId, is_log_expired: isLogExpired, status, last } = row
        const log = { id, status, last }
        return { object: readObject(row), runnerId, background, log, isLogExpired }
      }),

    /** False: no such response. */
    remove: (ownerId: string, id: string) =>
      runQuery(async () => {
        const removed = await drizzle.execute<{ is_kept: boolean }>(sql`
          delete from ${response} where id = ${keyOf(id)} and owner_id = ${ownerId}::uuid
          returning ${isKept(now())} as is_kept`)
        return removed[0]?.is_kept ?? false
      }),

    /**
     * Segments of a log after this sequence number, in order; the first may start before it. The
     * limit counts bytes, which the database knows without reading the frames.
     */
    readLog: (id: string, after: number, charsMax: number) =>
      runQuery(async (): Promise<readonly LogSegment[]> => {
        const key = keyOf(id)
        return drizzle.execute<LogSegment>(sql`
          select first, last, frames from (
            select first, last, frames,
              sum(octet_length(frames)) over (order by first) - octet_length(frames) as before
            from (
              select first, last, frames from ${responseLog}
              where response_id = ${key} and last > ${after}::integer and first >= coalesce((
                select max(first) from ${responseLog}
                where response_id = ${key} and first <= ${after}::bigint + 1), 0)
              order by first limit ${segmentsPerReadMax}::integer) as segment) as measured
          where before < ${charsMax}::bigint order by first`)
      }),

    /** Background. Leaves out responses that do not exist. */
    async progress(ids: readonly string[]): Promise<readonly LogProgress[]> {
      if (ids.length === 0) return []
      return drizzle.execute<LogProgress>(sql`
        select response.id, response.status, ${lastInLog} as last
        from ${response} where response.id in ${idRows(ids.map(keyOf))}`)
    },

    /**
     * In one transaction. Skips responses that were deleted or ended in the meantime; returns the ids
     * of those that another worker has ended in another way than they end here.
     */
    write: (work: JournalWork) => writeJournal(database, work, options),
    /** Background. Deletes expired responses and the oldest ones of owners over their limit. */
    sweep: createSweep(database, options),
    ...chainTables(drizzle, { ...options, runQuery }),
    ...backgroundTables(drizzle, { ...options, runQuery }),
  }
}

type FoundRow = {
  object: string
  status: ResponseStatus
  runner_id: string | null
  background: boolean
  last: number
  is_log_expired: boolean
  output: string
}
