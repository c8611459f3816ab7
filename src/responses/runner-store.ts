import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { response, responseRunner } from '#db/schema/responses.ts'
import type { Ending, OrphanedResponse } from '#responses/stored.ts'
import { keyOf, lastInLog, readObject, type StoreOptions, writeEnding } from './row-store.ts'

/** For the background: all of it waits as long as it takes. */
export function runnerTables(drizzle: Database['drizzle'], options: StoreOptions) {
  return {
    /** By the database's clock, since the clocks of two machines may differ. */
    async beat(runnerId: string): Promise<void> {
      await drizzle.execute(sql`
        insert into ${responseRunner} (id, seen_at) values (${runnerId}, clock_timestamp())
        on conflict (id) do update set seen_at = excluded.seen_at`)
    },

    async findLost(before: Date, countMax: number): Promise<readonly OrphanedResponse[]> {
      const silentS = (options.now().getTime() - before.getTime()) / 1000
      const rows = await drizzle.execute<LostRow>(sql`
        select response.id, response.object, response.status, ${lastInLog} as last
        from ${response} left join ${responseRunner} as runner on runner.id = response.runner_id
        where response.status = 'in_progress' and (runner.seen_at is null
          or runner.seen_at < clock_timestamp() - make_interval(secs => ${silentS}::float8))
        order by response.created_at limit ${countMax}::integer`)
      return rows.map((row) => ({ id: row.id, object: readObject(row), last: row.last }))
    },

    endLost: (id: string, ending: Ending) => endLost(drizzle, { id, ending }, options),
  }
}

type LostRow = { id: string; object: string; status: string; last: number }

/** Not where its log went on in the meantime: then its runner lives after all. */
async function endLost(
  drizzle: Database['drizzle'],
  { id, ending }: { id: string; ending: Ending },
  options: StoreOptions,
): Promise<boolean> {
  const { segment } = ending
  return drizzle.transaction(async (transaction) => {
    const [locked] = await transaction.execute<{ ownerId: string }>(sql`
      select response.owner_id as "ownerId" from ${response}
      where response.id = ${keyOf(id)} and response.status = 'in_progress'
      for no key update of response`)
    if (locked === undefined) return false
    const [log] = await transaction.execute<{ last: number }>(sql`
      select ${lastInLog} as last from ${response} where response.id = ${id}`)
    if (segment !== null && log?.last !== segment.first - 1) return false
    await writeEnding(transaction, { id, ...locked }, { ending, ...options })
    return true
  })
}
