import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { response, responseRunner } from '#db/schema/responses.ts'
import type { Ending, OrphanedResponse } from '#responses/stored.ts'
import {
  idRows,
  keyOf,
  lastInLog,
  readObject,
  type StoreOptions,
  writeEnding,
} from './row-store.ts'

/** For background work: waits for an unavailable database. */
export function runnerTables(drizzle: Database['drizzle'], options: StoreOptions) {
  return {
    /** Uses the database's clock, because the clocks of replicas may differ. */
    async heartbeat(runnerId: string): Promise<void> {
      await drizzle.execute(sql`
        insert into ${responseRunner} (id, seen_at) values (${runnerId}, clock_timestamp())
        on conflict (id) do update set seen_at = excluded.seen_at`)
    },

    async findOrphans(before: Date, countMax: number): Promise<readonly OrphanedResponse[]> {
      const silentS = (options.now().getTime() - before.getTime()) / 1000
      const rows = await drizzle.execute<OrphanRow>(sql`
        select response.id, response.object, response.status, ${lastInLog} as last
        from ${response} left join ${responseRunner} as runner on runner.id = response.runner_id
        where response.status = 'in_progress' and (runner.seen_at is null
          or runner.seen_at < clock_timestamp() - make_interval(secs => ${silentS}::float8))
        order by response.created_at limit ${countMax}::integer`)
      return rows.map(orphanOf)
    },

    async findUntracked(
      runner: { id: string; known: readonly string[] },
      countMax: number,
    ): Promise<readonly OrphanedResponse[]> {
      const rows = await drizzle.execute<OrphanRow>(sql`
        select response.id, response.object, response.status, ${lastInLog} as last
        from ${response}
        where response.runner_id = ${runner.id} and response.status = 'in_progress'
          and response.id not in ${idRows(runner.known)}
        order by response.created_at limit ${countMax}::integer`)
      return rows.map(orphanOf)
    },

    endInProgress: (id: string, ending: Ending): Promise<boolean> =>
      drizzle.transaction(async (transaction) => {
        const [locked] = await transaction.execute<{ ownerId: string }>(sql`
          select response.owner_id as "ownerId" from ${response}
          where response.id = ${keyOf(id)} and response.status = 'in_progress'
          for no key update of response`)
        if (locked === undefined) return false
        const [log] = await transaction.execute<{ last: number }>(sql`
          select ${lastInLog} as last from ${response} where response.id = ${id}`)
        // The log has advanced, so its worker is alive.
        if (ending.segment !== null && log?.last !== ending.segment.first - 1) return false
        await writeEnding(transaction, { id, ...locked }, { ending, ...options })
        return true
      }),
  }
}

type OrphanRow = { id: string; object: string; status: string; last: number }

function orphanOf(row: OrphanRow): OrphanedResponse {
  return { id: row.id, object: readObject(row), last: row.last }
}
