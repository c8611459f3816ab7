import type { Database } from '#db/client.ts'
import { repeat } from '#lib/repeat.ts'
import { orAfter } from '#lib/time-limit.ts'
import type { Log } from '#telemetry/log.ts'
import { createPerformer } from './perform.ts'
import { createJobStore } from './store.ts'

/** The database inside a transaction: what is added with it is there if and only if the rest is. */
export type Transaction = Parameters<Parameters<Database['drizzle']['transaction']>[0]>[0]

/** Work that survives its process. One queue for each kind of work. */
export type Jobs = {
  /**
   * Adds work in the caller's transaction. Where work of the same `key` already waits, it stays as
   * it is; where such work is being done, it will be done once more, with the payload that it has.
   */
  add(transaction: Transaction, job: NewJob): Promise<void>
  /** Takes up the work of a queue from now on, here and on every other process that says so. */
  process(queue: string, worker: JobHandler): void
  /** What there is of each queue, here and on every other process. */
  count(): Promise<readonly QueueCount[]>
  /** Lets nothing new begin, tells what runs to stop, and waits for it. */
  close(): Promise<void>
}

export type QueueCount = {
  readonly queue: string
  /** Never begun, or due again since it was added once more. */
  readonly waiting: number
  readonly running: number
  /** Waiting after a try that failed. */
  readonly failed: number
}

export type NewJob = {
  readonly queue: string
  readonly key: string | null
  /** Becomes JSON. */
  readonly payload: unknown
  /** Not before this time; absent: now. */
  readonly runAt?: Date
}

export type JobHandler = {
  /** How many at once in this process. */
  readonly concurrencyMax: number
  /**
   * Does the work; a throw means that it is tried again, after a pause that doubles, until
   * `attemptsMax`. Work of a process that died is taken over by another, so it must bear to be done
   * twice. `signal` aborts when the process stops, or when another has taken the work over.
   */
  run(job: RunningJob): Promise<void>
  readonly attemptsMax: number
  /** Told once when the work is given up, after the last try. */
  onFailed(job: RunningJob, error: unknown): Promise<void>
}

export type RunningJob = {
  readonly id: string
  readonly payload: unknown
  /** 1 at the first try. */
  readonly attempt: number
  readonly signal: AbortSignal
}

export type JobTimings = {
  /** How long work is left to a process that gives no sign of life. */
  readonly leaseMs: number
  /** How often every process looks for work that nobody told it of. */
  readonly pollMs: number
  /** How long what runs may take to stop. */
  readonly closeWaitMaxMs: number
}

export type JobsDeps = {
  database: Pick<Database, 'drizzle' | 'listen' | 'notifyOnCommit'>
  log: Pick<Log, 'debug' | 'warn' | 'error'>
  timings?: Partial<JobTimings>
}

const defaultTimes: JobTimings = { leaseMs: 30_000, pollMs: 2_000, closeWaitMaxMs: 10_000 }
/** A lease outlives so many signs of life that are lost. */
const beatsPerLease = 4
/** What one process takes at a time, so that the others get their part. */
const claimedAtOnceMax = 16
const channel = 'jobs'

export async function createJobs(deps: JobsDeps): Promise<Jobs> {
  const { database, log } = deps
  const times = { ...defaultTimes, ...deps.timings }
  const store = createJobStore(database)
  const workers = new Map<string, JobHandler>()
  const performer = createPerformer({ store, log, settled: () => looking.soon() })
  let closing = false

  async function look() {
    for (const [queue, worker] of workers) {
      while (await takeUp(queue, worker)) if (closing) return
    }
  }
  /** Says whether there may be more that could begin at once. */
  async function takeUp(queue: string, worker: JobHandler): Promise<boolean> {
    const room = Math.min(worker.concurrencyMax - performer.running(queue), claimedAtOnceMax)
    if (room <= 0 || closing) return false
    const claimed = await store.claim(queue, room, times.leaseMs)
    for (const work of claimed) performer.begin({ queue, worker, work })
    return claimed.length === room
  }

  const looking = repeat(look, {
    everyMs: times.pollMs,
    log,
    failed: 'work cannot be taken from the queue',
  })
  const beating = repeat(() => performer.beat(times.leaseMs), {
    everyMs: times.leaseMs / beatsPerLease,
    log,
    failed: 'no sign of life can be given for running work',
  })
  await database.listen(channel, {
    onMessage(queue) {
      if (workers.has(queue)) looking.soon()
    },
    onGap: looking.soon,
  })

  return {
    async add(transaction, job) {
      await store.add(transaction, job)
      await database.notifyOnCommit(transaction, channel, job.queue)
    },
    process(queue, worker) {
      if (workers.has(queue)) throw new Error(`two workers for the queue ${queue}`)
      workers.set(queue, worker)
      looking.soon()
    },
    count: store.count,
    async close() {
      closing = true
      performer.stop()
      await looking.stop()
      await orAfter(performer.ended(), times.closeWaitMaxMs, undefined)
      await beating.stop()
    },
  }
}
