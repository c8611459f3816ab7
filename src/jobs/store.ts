import { type SQL, sql } from 'drizzle-orm'
import type { Database, Transaction } from '#db/client.ts'
import { job } from '#db/schema/jobs.ts'
import { parseTraceContext, type TraceContext } from '#lib/trace.ts'
import { currentTrace } from '#lib/trace-scope.ts'
import type { NewJob, QueueCount } from './jobs.ts'

type LaneClaim = {
  readonly countMax: number
  readonly laneJobsMax: number
  /** The lanes of this worker's running jobs, each once per job. */
  readonly busyLanes: readonly string[]
  readonly times: LeaseTimes
}

type LeaseTimes = {
  readonly leaseMs: number
  /** The age of a renewal after which a worker without a connection is dead; null: not now. */
  readonly lostAfterMs: number | null
}

/** A lease of this worker, whose claim tells by which; each claim of a job has a new id. */
export type JobLease = { readonly id: string; readonly claim: string }

export type ClaimedJob = JobLease & {
  readonly lane: string
  readonly payload: unknown
  /** 1 at the first attempt. */
  readonly attempt: number
  /** The error of the previous attempt, if its worker could record one. */
  readonly lastError: string | null
  /** Of the request that added the job, if traces were exported then. */
  readonly trace: TraceContext | null
}

export type JobStore = ReturnType<typeof createJobStore>

/**
 * The job table. Times are the database's, because the clocks of replicas may differ. Every
 * statement names the claim, so a worker that lost its lease changes nothing.
 */
export function createJobStore({
  drizzle,
  processName,
}: Pick<Database, 'drizzle' | 'processName'>) {
  const ownMark = markOf(processName)
  /** A worker that was killed has no connection at once; one that is suspended keeps its own. */
  const isLost = ({ leaseMs, lostAfterMs }: LeaseTimes) =>
    lostAfterMs === null
      ? sql`false`
      : sql`(locked_until < ${later(leaseMs - lostAfterMs)}
          and substr(locked_by::text, 15, 1) = '8' and left(locked_by::text, 13) <> ${ownMark}
          and not exists (
            select 1 from pg_stat_activity
            where left(md5(application_name), 8) || '-' || substr(md5(application_name), 9, 4)
              = left(locked_by::text, 13)))`
  const isDue = (times: LeaseTimes) =>
    sql`run_at <= now() and (locked_until is null or locked_until < now() or ${isLost(times)})`
  const isHeld = ({ id, claim }: JobLease) => sql`id = ${id}::uuid and locked_by = ${claim}::uuid`
  async function claimDue(due: SQL, { leaseMs }: LeaseTimes): Promise<ClaimedJob[]> {
    const claim = claimOf(ownMark)
    const rows = await drizzle.execute<ClaimedRow>(sql`
      with due as (${due}),
      claimed as (
        update ${job} set locked_by = ${claim}::uuid, locked_until = ${later(leaseMs)},
          attempts = attempts + 1, again = false
        from due where job.id = due.id
        returning job.*)
      select id, lane, payload, attempts, last_error, trace from claimed order by run_at, id`)
    return rows.map((row) => ({
      id: row.id,
      claim,
      lane: row.lane,
      attempt: row.attempts,
      lastError: row.last_error,
      trace: parsed(row.trace),
      payload: JSON.parse(row.payload),
    }))
  }
  return {
    /**
     * Locks the row of a waiting job even if it does not change it, so that no worker claims the job
     * before the caller's transaction commits: the handler sees what the job was added for.
     */
    async add(transaction: Transaction, added: NewJob): Promise<void> {
      const runAt = added.runAt?.toISOString() ?? null
      await transaction.execute(sql`
        insert into ${job} (id, queue, key, lane, payload, run_at, created_at, trace)
        values (${Bun.randomUUIDv7()}::uuid, ${added.queue}, ${added.key}, ${added.lane ?? ''},
          ${JSON.stringify(added.payload)}, coalesce(${runAt}::timestamptz, now()), now(),
          ${textOf(currentTrace())})
        on conflict (queue, key) do update set again = true where job.locked_by is not null`)
    },

    /** Claims due jobs and those of dead workers or with an expired lease, oldest first. */
    claim: (queue: string, countMax: number, times: LeaseTimes): Promise<ClaimedJob[]> =>
      claimDue(
        sql`select id from ${job} where queue = ${queue} and ${isDue(times)}
          order by run_at, id limit ${countMax}::integer for update skip locked`,
        times,
      ),

    /**
     * The same by turns of the lanes: first the oldest job of each lane without running jobs, then of
     * those with one, and so on; chance decides between lanes. Reads the first jobs of each lane, not the whole queue.
     */
    claimByLane: (
      queue: string,
      { countMax, laneJobsMax, busyLanes, times }: LaneClaim,
    ): Promise<ClaimedJob[]> =>
      claimDue(
        sql`select id from ${job} where id in (
          with recursive lanes as (
            (select lane from ${job} where queue = ${queue} order by lane limit 1)
            union all
            select (select min(next.lane) from ${job} next
              where next.queue = ${queue} and next.lane > lanes.lane)
            from lanes where lanes.lane is not null),
          busy as (
            select running.lane, count(*) as jobs
            from json_array_elements_text(${JSON.stringify(busyLanes)}::json) as running (lane)
            group by running.lane)
          select first.id
          from lanes left join busy using (lane)
          cross join lateral (
            select id, run_at, row_number() over (order by run_at, id) + coalesce(busy.jobs, 0) as turn
            from (
              select id, run_at from ${job}
              where queue = ${queue} and job.lane = lanes.lane and ${isDue(times)}
              order by run_at, id limit ${laneJobsMax}::integer) oldest) first
          where lanes.lane is not null and first.turn <= ${laneJobsMax}::integer
          order by first.turn, random() limit ${countMax}::integer)
        and ${isDue(times)} for update skip locked`,
        times,
      ),

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
          count(*) filter (where locked_by is null and last_error is not null)::int as failed,
          coalesce(extract(epoch from now() - min(run_at)
            filter (where locked_by is null and run_at <= now())), 0)::float8 as "oldestDueS"
        from ${job} group by queue order by queue`),
  }
}

type ClaimedRow = {
  id: string
  lane: string
  payload: string
  attempts: number
  last_error: string | null
  trace: string | null
}

function later(ms: number) {
  return sql`now() + make_interval(secs => ${ms / 1000}::float8)`
}

function textOf(trace: TraceContext | null): string | null {
  if (trace === null) return null
  const { traceparent, tracestate } = trace
  return tracestate === null ? traceparent : `${traceparent} ${tracestate}`
}

function parsed(text: string | null): TraceContext | null {
  if (text === null) return null
  const end = text.indexOf(' ')
  return end === -1
    ? parseTraceContext(text, null)
    : parseTraceContext(text.slice(0, end), text.slice(end + 1))
}

/** The beginning of the claims of a worker, by the name of its connections. */
function markOf(processName: string): string {
  const hash = new Bun.CryptoHasher('md5').update(processName).digest('hex')
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}`
}

/** A UUID of version 8, whose bits an application may define. Versions before this one made random ones. */
function claimOf(mark: string): string {
  return mark + crypto.randomUUID().slice(mark.length).replace(/^-4/, '-8')
}
