import {
  createJobs,
  type JobHandler,
  type Jobs,
  type JobTimings,
  type RunningJob,
} from '#jobs/jobs.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { quietLog } from '#test/support/quiet-log.ts'

/** Job queues on a separate database, each like that of another worker. */
export type JobsFixture = {
  readonly database: TestDatabase
  start(times?: Partial<JobTimings>): Promise<Jobs>
  add(
    queue: string,
    job?: { key?: string; lane?: string; payload?: unknown; runAt?: Date },
  ): Promise<void>
  rows(): Promise<readonly JobRow[]>
  /** Closes all queues and deletes all jobs. */
  clear(): Promise<void>
  close(): Promise<void>
}

type JobRow = { key: string | null; attempts: number; is_held: boolean; last_error: string | null }

export async function startJobsFixture(): Promise<JobsFixture> {
  const database = await openTestDatabase()
  const started: Jobs[] = []
  const start = async (times?: Partial<JobTimings>) => {
    const jobs = await createJobs({
      database,
      log: quietLog,
      timings: { pollMs: 50, ...times },
    })
    started.push(jobs)
    return jobs
  }
  const adding = await createJobs({ database, log: quietLog })
  const clear = async () => {
    await Promise.all(started.splice(0).map((jobs) => jobs.close()))
    await database.drizzle.execute('delete from job')
  }
  return {
    database,
    start,
    add: (queue, { key, lane, payload = null, runAt } = {}) =>
      database.drizzle.transaction((transaction) =>
        adding.add(transaction, {
          queue,
          key: key ?? null,
          payload,
          ...(runAt === undefined ? {} : { runAt }),
          ...(lane === undefined ? {} : { lane }),
        }),
      ),
    async rows() {
      return database.drizzle.execute<JobRow>(
        'select key, attempts, locked_by is not null as is_held, last_error from job order by id',
      )
    },
    clear,
    async close() {
      await clear()
      await adding.close()
      await database.close()
    },
  }
}

/** A handler with one attempt. */
export function handlerOf(
  run: (job: RunningJob) => Promise<void> | void,
  rest: Partial<JobHandler> = {},
): JobHandler {
  return {
    concurrencyMax: 4,
    attemptsMax: 1,
    onFailed: async () => {},
    run: async (job) => run(job),
    ...rest,
  }
}

export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
