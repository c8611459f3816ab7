import { sql } from 'drizzle-orm'
import { response } from '#db/schema/responses.ts'
import type { OrphanedResponse } from '#responses/stored.ts'
import { type Handle, idRows, lastInLog, readObject } from './row-store.ts'

type StrayRow = { id: string; object: string; status: string; last: number }

/** For the background: waits as long as it takes. */
export async function findStrays(
  drizzle: Handle,
  runner: { id: string; known: readonly string[] },
  countMax: number,
): Promise<readonly OrphanedResponse[]> {
  const rows = await drizzle.execute<StrayRow>(sql`
    select response.id, response.object, response.status, ${lastInLog} as last
    from ${response}
    where response.runner_id = ${runner.id} and response.status = 'in_progress'
      and response.id not in ${idRows(runner.known)}
    order by response.created_at limit ${countMax}::integer`)
  return rows.map((row) => ({ id: row.id, object: readObject(row), last: row.last }))
}
