import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { job } from '#db/schema/jobs.ts'
import type { NewJob, QueueCount, Transaction } from './jobs.ts'

/** A lease of this worker; each claim of a job has a new id. */
export type JobLease = { readonly id: string; readonly claim: string }

export type ClaimedJob = JobLease & {
  readonly payload: unknown
  /** 1 at the first attempt. */
  readonly attempt: number
  /** The error of the previous attempt, if its worker could record one. */
  readonly lastError: string | null
}

export type JobStore = ReturnType<typeof createJobStore>

/**
 * The job table. Times are the database's, because the clocks of replicas may differ. Every
 * statement names the claim, so a worker that lost its lease changes nothing.
 */
export function createJobStore({ drizzle }: Pick<Database, 'drizzle'>) {
  const isHeld = ({ id, claim }: JobLease) => sql`id = ${id}::uuid and locked_by = ${claim}::uuid`
  return {
    /**
     * Locks the row of a waiting job even if it does not change it, so that no worker claims the job
     * before the caller's transaction commits: the handler sees what the job was added for.
     */
    async add(transaction: Transaction, added: NewJob): Promise<void> {
      const runAt = added.runAt?.toISOString() ?? null
      await transaction.execute(sql`
        insert into ${job} (id, queue, key, payload, run_at, created_at)
        values (${Bun.randomUUIDv7()}::uuid, ${added.queue}, ${added.key},
          ${JSON.stringify(added.payload)}, coalesce(${runAt}::timestamptz, now()), now())
        on conflict (queue, key) do update set again = true where job.locked_by is not null`)
    },

    /** Claims due jobs and jobs with an expired lease, oldest first. */
    async claim(queue: string, countMax: number, leaseMs: number): Promise<ClaimedJob[]> {
      const claim = crypto.randomUUID()
      const rows = await drizzle.execute<ClaimedRow>(sql`
        with due as (
          select id from ${job}
          where queue = ${queue} and run_at <= now()
            and (locked_until is null or locked_until < now())
          order by run_at, id limit ${countMax}::integer
          for update skip locked),
        claimed as (
          update ${job} set locked_by = ${claim}::uuid, locked_until = ${later(leaseMs)},
            attempts = attempts + 1, again = false
          from due where job.id = due.id
          returning job.*)
        select id, payload, attempts, last_error from claimed order by run_at, id`)
      return rows.map((row) => ({
        id: row.id,
        claim,
        attempt: row.attempts,
        lastError: row.last_error,
        payload: JSON.parse(row.payload),
      }))
    },

    /** Renews leases; returns those that this worker still holds. */
    async renew(held: readonly JobLease[], leaseMs: number): Promise<readonly JobLease[]> {
      return drizzle.execute<JobLease>(sql`
        update ${job} set locked_until = ${later(leaseMs)}
        from json_to_recordset(${JSON.stringify(held)}::json) as held (id uuid, claim uuid)
        where job.id = held.id and job.locked_by = held.claim
        returning job.id, job.locked_by as claim`)
    },

    /** Deletes a completed job, or makes it due again if it was added while it ran. */
    async finish(held: JobLease): Promise<void> {
      const removed = await drizzle.execute(
        sql`delete from ${job} where ${isHeld(held)} and not again returning id`,
      )
      if (removed.length > 0) return
      await drizzle.execute(sql`
        update ${job} set again = false, attempts = 0, last_error = null, run_at = now(),
          locked_by = null, locked_until = null
        where ${isHeld(held)}`)
    },

    async retryLater(held: JobLease, failure: { backoffMs: number; error: string }): Promise<void> {
      await drizzle.execute(sql`
        update ${job} set run_at = ${later(failure.backoffMs)}, last_error = ${failure.error},
          locked_by = null, locked_until = null
        where ${isHeld(held)}`)
    },

    /** Returns a claimed job to the queue without counting the attempt. */
    async release(held: JobLease): Promise<void> {
      await drizzle.execute(sql`
        update ${job} set attempts = attempts - 1, locked_by = null, locked_until = null
        where ${isHeld(held)}`)
    },

    count: (): Promise<readonly QueueCount[]> =>
      drizzle.execute<QueueCount>(sql`
        select queue,
          count(*) filter (where locked_by is null and last_error is null)::int as waiting,
          count(*) filter (where locked_by is not null)::int as running,
          count(*) filter (where locked_by is null and last_error is not null)::int as failed
        from ${job} group by queue order by queue`),
  }
}

type ClaimedRow = { id: string; payload: string; attempts: number; last_error: string | null }

function later(ms: number) {
  return sql`now() + make_interval(secs => ${ms / 1000}::float8)`
}
