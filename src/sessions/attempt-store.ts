import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'

export type AttemptStore = ReturnType<typeof createAttemptStore>

/** Attempts of clients, counted by all workers and replicas, with the time of the database. */
export function createAttemptStore({ drizzle }: Pick<Database, 'drizzle'>) {
  const query = createQueryRunner()
  return {
    /** Counts an attempt; the time until the window ends if it has none left. */
    take: (
      hash: Uint8Array,
      { attemptsMax, windowMs }: { attemptsMax: number; windowMs: number },
    ): Promise<{ readonly waitMs: number } | 'taken'> =>
      query(async () => {
        const endsAt = sql`clock_timestamp() + ${windowMs}::integer * interval '1 millisecond'`
        const taken = await drizzle.execute(sql`
          insert into login_attempt as known (hash, attempts, ends_at) values (${hash}, 1, ${endsAt})
          on conflict (hash) do update set
            attempts = case when known.ends_at > clock_timestamp() then known.attempts + 1 else 1 end,
            ends_at = case when known.ends_at > clock_timestamp() then known.ends_at else ${endsAt} end
          where known.attempts < ${attemptsMax}::integer or known.ends_at <= clock_timestamp()
          returning hash`)
        if (taken.length > 0) return 'taken'
        const [row] = await drizzle.execute<{ wait_ms: number }>(sql`
          select extract(epoch from ends_at - clock_timestamp())::float8 * 1000 as wait_ms
          from login_attempt where hash = ${hash}`)
        return { waitMs: Math.max(0, row?.wait_ms ?? 0) }
      }),

    /** Of an attempt that succeeded. */
    giveBack: (hash: Uint8Array): Promise<unknown> =>
      query(() =>
        drizzle.execute(sql`
          update login_attempt set attempts = attempts - 1 where hash = ${hash} and attempts > 0`),
      ),

    /** Deletes the windows that have ended, and those that end first beyond this number. */
    sweep: (windowsMax: number): Promise<unknown> =>
      query(() =>
        drizzle.execute(sql`
          delete from login_attempt where ends_at <= clock_timestamp() or hash in (
            select hash from login_attempt order by ends_at desc offset ${windowsMax}::integer)`),
      ),
  }
}
