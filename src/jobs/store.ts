import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { job } from '#db/schema/jobs.ts'
import type { NewJob, QueueCount, Transaction } from './jobs.ts'

/** Work that this process holds; the claim is another one each time that it is taken up. */
export type HeldWork = { readonly id: string; readonly claim: string }

export type ClaimedWork = HeldWork & {
  readonly payload: unknown
  /** 1 at the first try. */
  readonly attempt: number
  /** Why the last try failed, where it could say so. */
  readonly lastError: string | null
}

export type JobStore = ReturnType<typeof createJobStore>

/**
 * The table of work. Its times are the database's, since the clocks of two machines may differ.
 * Whoever lost a lease changes nothing: every statement names the claim.
 */
export function createJobStore({ drizzle }: Pick<Database, 'drizzle'>) {
  const isHeld = ({ id, claim }: HeldWork) => sql`id = ${id}::uuid and locked_by = ${claim}::uuid`
  return {
    /**
     * The row of work that waits is locked by this, changed or not, and so is left alone until the
     * caller's transaction is committed: whoever does the work sees what it was added for.
     */
    async add(transaction: Transaction, added: NewJob): Promise<void> {
      const runAt = added.runAt?.toISOString() ?? null
      await transaction.execute(sql`
        insert into ${job} (id, queue, key, payload, run_at, created_at)
        values (${Bun.randomUUIDv7()}::uuid, ${added.queue}, ${added.key},
          ${JSON.stringify(added.payload)}, coalesce(${runAt}::timestamptz, now()), now())
        on conflict (queue, key) do update set again = true where job.locked_by is not null`)
    },

    /** Takes what is due, the oldest first, and what others took and gave no sign of life for. */
    async claim(queue: string, countMax: number, leaseMs: number): Promise<ClaimedWork[]> {
      const claim = crypto.randomUUID()
      const rows = await drizzle.execute<ClaimedRow>(sql`
        with due as (
          select id from ${job}
          where queue = ${queue} and run_at <= now()
            and (locked_until is null or locked_until < now())
          order by run_at, id limit ${countMax}::integer
          for update skip locked)
        update ${job} set locked_by = ${claim}::uuid, locked_until = ${later(leaseMs)},
          attempts = attempts + 1, again = false
        from due where job.id = due.id
        returning job.id, job.payload, job.attempts, job.last_error`)
      return rows.map((row) => ({
        id: row.id,
        claim,
        attempt: row.attempts,
        lastError: row.last_error,
        payload: JSON.parse(row.payload),
      }))
    },

    /** Holds on to it for another lease; answers with what is still ours. */
    async keep(held: readonly HeldWork[], leaseMs: number): Promise<readonly HeldWork[]> {
      return drizzle.execute<HeldWork>(sql`
        update ${job} set locked_until = ${later(leaseMs)}
        from json_to_recordset(${JSON.stringify(held)}::json) as held (id uuid, claim uuid)
        where job.id = held.id and job.locked_by = held.claim
        returning job.id, job.locked_by as claim`)
    },

    /** It is done: the row goes, unless it was added once more in the meantime. */
    async finish(held: HeldWork): Promise<void> {
      const removed = await drizzle.execute(
        sql`delete from ${job} where ${isHeld(held)} and not again returning id`,
      )
      if (removed.length > 0) return
      await drizzle.execute(sql`
        update ${job} set again = false, attempts = 0, last_error = null, run_at = now(),
          locked_by = null, locked_until = null
        where ${isHeld(held)}`)
    },

    async retryLater(held: HeldWork, failure: { pauseMs: number; error: string }): Promise<void> {
      await drizzle.execute(sql`
        update ${job} set run_at = ${later(failure.pauseMs)}, last_error = ${failure.error},
          locked_by = null, locked_until = null
        where ${isHeld(held)}`)
    },

    count: (): Promise<readonly QueueCount[]> =>
      drizzle.execute<QueueCount>(sql`
        select queue,
          count(*) filter (where locked_by is null and last_error is null)::int as waiting,
          count(*) filter (where locked_by is not null)::int as running,
          count(*) filter (where locked_by is null and last_error is not null)::int as failed
        from ${job} group by queue order by queue`),

    /** Gives it back as if it had not been taken. */
    async release(held: HeldWork): Promise<void> {
      await drizzle.execute(sql`
        update ${job} set attempts = attempts - 1, locked_by = null, locked_until = null
        where ${isHeld(held)}`)
    },
  }
}

type ClaimedRow = { id: string; payload: string; attempts: number; last_error: string | null }

function later(ms: number) {
  return sql`now() + make_interval(secs => ${ms / 1000}::float8)`
}
