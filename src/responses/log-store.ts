import { sql } from 'drizzle-orm'
import type { QueryRunner } from '#db/query-runner.ts'
import { response, responseLog } from '#db/schema/responses.ts'
import type { LogProgress, LogSegment } from '#responses/stored.ts'
import { type Handle, idRows, keyOf, lastInLog } from './row-store.ts'

/** One answer looks at no more segments of a log than this. */
const segmentsPerRead = 1_000

export function logTables(drizzle: Handle, ask: QueryRunner) {
  return {
    readLog: (id: string, after: number, charsMax: number) =>
      ask(() => readLog(drizzle, { id, after, charsMax })),

    /** For the background: waits as long as it takes. */
    async progress(ids: readonly string[]): Promise<readonly LogProgress[]> {
      if (ids.length === 0) return []
      const rows = await drizzle.execute<LogProgress>(sql`
        select response.id, response.status, ${lastInLog} as last
        from ${response} where response.id in ${idRows(ids.map(keyOf))}`)
      return [...rows]
    },
  }
}

/** Lengths are taken in bytes, which are there without reading the frames, and never fewer. */
async function readLog(
  drizzle: Handle,
  { id, after, charsMax }: { id: string; after: number; charsMax: number },
): Promise<readonly LogSegment[]> {
  const key = keyOf(id)
  const rows = await drizzle.execute<LogSegment>(sql`
    select first, last, frames from (
      select first, last, frames,
        sum(octet_length(frames)) over (order by first) - octet_length(frames) as before
      from (
        select first, last, frames from ${responseLog}
        where response_id = ${key} and last > ${after}::integer and first >= coalesce((
          select max(first) from ${responseLog}
          where response_id = ${key} and first <= ${after}::bigint + 1), 0)
        order by first limit ${segmentsPerRead}::integer) as segment) as measured
    where before < ${charsMax}::bigint order by first`)
  return [...rows]
}
