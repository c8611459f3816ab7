import type { Database, Transaction } from '#db/client.ts'
import { repeat } from '#lib/repeat.ts'
import { orAfter } from '#lib/time-limit.ts'
import type { TraceContext } from '#lib/trace.ts'
import type { Log } from '#telemetry/log.ts'
import type { Tracer } from '#telemetry/tracing/tracer.ts'
import { createJobRunner, type OnAttempted } from './runner.ts'
import { createJobStore } from './store.ts'

/** A database transaction: a job added with it exists if and only if the transaction commits. */
export type Jobs = Awaited<ReturnType<typeof createJobs>>

export type JobProcessor = {
  /**
   * Claims no more jobs of this queue in this worker. Running jobs continue; one that throws is
   * released without counting the attempt.
   */
  stop(): void
}

export type QueueCount = {
  readonly queue: string
  /** Never started, or due again because it was added while it ran. */
  readonly waiting: number
  readonly running: number
  /** Waiting for a retry. */
  readonly failed: number
  /** How long the first of those that could run has been waiting; 0 without any. */
  readonly oldestDueS: number
}

export type NewJob = {
  readonly queue: string
  readonly key: string | null
  /** Jobs of a lane run oldest first; lanes take turns. Absent: all jobs share one. */
  readonly lane?: string
  /** Stored as JSON. */
  readonly payload: unknown
  /** Earliest start; absent: now. */
  readonly runAt?: Date
}

export type JobHandler = {
  /** Concurrent jobs in this worker. */
  readonly concurrencyMax: number
  /** Concurrent jobs of one lane in this worker; absent: lanes are ignored. */
  readonly laneJobsMax?: number
  /**
   * Runs the job. A throw schedules a retry with exponential backoff, until `attemptsMax`. A job
   * whose worker died runs again, so it must be idempotent. `signal` aborts when the
   * worker stops or loses the lease.
   */
  run(job: RunningJob): Promise<void>
  readonly attemptsMax: number
  /** Called once, after the last attempt failed. */
  onFailed(job: RunningJob, error: unknown): Promise<void>
}

export type RunningJob = {
  readonly id: string
  readonly payload: unknown
  /** 1 at the first attempt. */
  readonly attempt: number
  readonly signal: AbortSignal
  /** For the contexts of its work. */
  readonly trace: TraceContext | null
}

export type JobTimings = {
  /** A job whose lease was not renewed for this long is claimed by another worker. */
  readonly leaseMs: number
  /** The same for a job of a worker without a connection to the database, which is dead. */
  readonly lostAfterMs: number
  /**
   * How long this worker must have reached the database before it considers others dead: after an outage, all
   * get time to connect.
   */
  readonly settleMs: number
  /** Interval of the poll for jobs whose notification was lost. */
  readonly pollMs: number
  /** How long `close` waits for running jobs. */
  readonly closeWaitMaxMs: number
}

export type JobsDeps = {
  database: Pick<Database, 'drizzle' | 'processName' | 'listen' | 'notifyOnCommit'>
  log: Pick<Log, 'debug' | 'warn' | 'error'>
  timings?: Partial<JobTimings>
  /** Absent: jobs have no spans. */
  tracer?: Tracer | null
  onAttempted?: OnAttempted
}

const defaultTimings: JobTimings = {
  leaseMs: 30_000,
  lostAfterMs: 5_000,
  settleMs: 5_000,
  pollMs: 2_000,
  closeWaitMaxMs: 10_000,
}
/** A worker that loses its connection for a moment has renewed its leases shortly before. */
const renewalsPerLease = 12
/** Jobs that one worker claims at a time, so that the others get their share. */
const claimBatchMax = 16
const channel = 'jobs'

/** Durable work queues in the database, one per kind of job, shared by all replicas. */
export async function createJobs(deps: JobsDeps) {
  const { database, log } = deps
  const timings = { ...defaultTimings, ...deps.timings }
  const store = createJobStore(database)
  const handlers = new Map<string, JobHandler>()
  const runner = createJobRunner({
    store,
    log,
    tracer: deps.tracer ?? null,
    onAttempted: deps.onAttempted ?? (() => {}),
    isStopped: (queue) => !handlers.has(queue),
    onEnded: () => polling.soon(),
  })

  let reachedSince: number | null = performance.now()
  const leaseTimes = () => {
    const isSettled = reachedSince !== null && performance.now() - reachedSince >= timings.settleMs
    return { leaseMs: timings.leaseMs, lostAfterMs: isSettled ? timings.lostAfterMs : null }
  }

  async function poll() {
    try {
      await claimAll()
      reachedSince ??= performance.now()
    } catch (error) {
      reachedSince = null
      throw error
    }
  }
  async function claimAll() {
    for (const [queue, handler] of handlers) {
      let isMore = true
      while (isMore && handlers.has(queue)) isMore = await claim(queue, handler)
    }
  }
  /** Returns whether more jobs may be waiting that could start now. */
  async function claim(queue: string, handler: JobHandler): Promise<boolean> {
    const busyLanes = runner.runningLanes(queue)
    const free = Math.min(handler.concurrencyMax - busyLanes.length, claimBatchMax)
    if (free <= 0) return false
    const { laneJobsMax = null } = handler
    const claimed =
      laneJobsMax === null
        ? await store.claim(queue, free, leaseTimes())
        : await store.claimByLane(queue, {
            countMax: free,
            laneJobsMax,
            busyLanes,
            times: leaseTimes(),
          })
    for (const job of claimed) runner.start({ queue, handler, job })
    return claimed.length === free
  }

  const polling = repeat(poll, { everyMs: timings.pollMs, log, failed: 'job poll failed' })
  const renewing = repeat(() => runner.renewLeases(timings.leaseMs), {
    everyMs: timings.leaseMs / renewalsPerLease,
    log,
    failed: 'job lease renewal failed',
  })
  await database.listen(channel, {
    onMessage(queue) {
      if (handlers.has(queue)) polling.soon()
    },
    onGap: polling.soon,
  })

  return {
    /**
     * Adds a job in the caller's transaction. If a job with the same `key` is waiting, it stays
     * unchanged; if one is running, it runs once more afterwards, with its original payload.
     */
    async add(transaction: Transaction, job: NewJob): Promise<void> {
      await store.add(transaction, job)
      await database.notifyOnCommit(transaction, channel, job.queue)
    },
    /** Starts to process a queue in this worker. Each queue has one handler per worker. */
    process(queue: string, handler: JobHandler): JobProcessor {
      if (handlers.has(queue)) throw new Error(`two handlers for the queue ${queue}`)
      handlers.set(queue, handler)
      polling.soon()
      return { stop: () => void handlers.delete(queue) }
    },
    /** Jobs per queue, across all replicas. */
    count: store.count,
    /** Claims no more jobs, aborts the running ones and waits for them to end. */
    async close(): Promise<void> {
      handlers.clear()
      runner.abortAll()
      await polling.stop()
      await orAfter(runner.ended(), timings.closeWaitMaxMs, undefined)
      await renewing.stop()
    },
  }
}
