import { sleep } from '#lib/deadline.ts'
import { type Log, redact } from '#telemetry/log.ts'
import type { JobHandler, RunningJob } from './jobs.ts'
import { pauseAfterFailureMs } from './pause.ts'
import type { ClaimedWork, JobStore } from './store.ts'

/** Does the work that was claimed, and writes down how it ended. */
export type Performer = {
  /** How much of a queue is being done here. */
  running(queue: string): number
  begin(task: Task): void
  /** Gives a sign of life for all that runs; what is no longer ours is told so. */
  beat(leaseMs: number): Promise<void>
  /** Tells everything to stop; what begins from now on is given back. */
  stop(): void
  /** Resolves when nothing runs any more. */
  ended(): Promise<void>
}

type Task = {
  readonly queue: string
  readonly worker: JobHandler
  readonly work: ClaimedWork
}

type PerformerDeps = {
  store: Omit<JobStore, 'add' | 'claim'>
  log: Pick<Log, 'debug' | 'warn' | 'error'>
  /** Something ended, so there is room for more. */
  settled(): void
}

/** Between two tries to write down an end while the database is away. */
const recordEveryMs = 1_000
const errorCharsMax = 1_000

export function createPerformer({ store, log, settled }: PerformerDeps): Performer {
  const tasks = new Map<Task, { controller: AbortController; ended: Promise<void> }>()
  const stopping = new AbortController()

  function begin(task: Task) {
    const controller = new AbortController()
    const ended = perform(task, controller.signal).finally(() => {
      tasks.delete(task)
      settled()
    })
    tasks.set(task, { controller, ended })
  }

  async function perform(task: Task, signal: AbortSignal): Promise<void> {
    const { payload, id, attempt } = task.work
    const job = { id, payload, attempt, signal }
    const record = await (stopping.signal.aborted
      ? () => store.release(task.work)
      : outcome(task, job))
    if (record !== null) await insist(record, signal)
  }

  /** What has to be written down; null: nothing, since it is the business of others now. */
  async function outcome(task: Task, job: RunningJob): Promise<(() => Promise<void>) | null> {
    const { work, worker } = task
    try {
      if (job.attempt > worker.attemptsMax) await giveUp(task, job, neverEnded(work))
      else await worker.run(job)
      return () => store.finish(work)
    } catch (error) {
      if (stopping.signal.aborted) return () => store.release(work)
      if (job.signal.aborted) return null
      return afterFailure(task, job, error)
    }
  }

  async function afterFailure(task: Task, job: RunningJob, error: unknown) {
    const { queue, work, worker } = task
    const retry = (failure: unknown) => () =>
      store.retryLater(work, {
        pauseMs: pauseAfterFailureMs(failure, job.attempt),
        error: wordsOf(failure),
      })
    if (job.attempt < worker.attemptsMax) {
      log.warn('work failed and will be tried again', { queue, attempt: job.attempt, error })
      return retry(error)
    }
    if (job.attempt > worker.attemptsMax) return retry(error)
    try {
      await giveUp(task, job, error)
      return () => store.finish(work)
    } catch (failure) {
      log.error('giving up work failed', { queue, error: failure })
      return retry(error)
    }
  }

  async function giveUp({ queue, worker }: Task, job: RunningJob, error: unknown) {
    await worker.onFailed(job, error)
    log.error('work was given up', { queue, attempt: job.attempt, payload: job.payload, error })
  }

  /** Until it is written, or others have taken the work over; a process that stops tries once. */
  async function insist(record: () => Promise<void>, signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        return await record()
      } catch (error) {
        log.debug('the end of work cannot be written down yet', { error })
        if (signal.aborted) return
        await sleep(recordEveryMs, signal).catch(() => {})
      }
    }
  }

  return {
    running: (queue) => [...tasks.keys()].filter((task) => task.queue === queue).length,
    begin,
    async beat(leaseMs) {
      const held = [...tasks.keys()]
      if (held.length === 0) return
      const works = held.map(({ work: { id, claim } }) => ({ id, claim }))
      const kept = await store.keep(works, leaseMs)
      const isKept = ({ work }: Task) =>
        kept.some(({ id, claim }) => id === work.id && claim === work.claim)
      for (const task of held.filter((one) => !isKept(one))) {
        tasks.get(task)?.controller.abort(new Error('this work is no longer held here'))
      }
    },
    stop() {
      const reason = new Error('the process stops')
      stopping.abort(reason)
      for (const { controller } of tasks.values()) controller.abort(reason)
    },
    async ended() {
      await Promise.all([...tasks.values()].map(({ ended }) => ended))
    },
  }
}

/** Every try ended with its process, so the work itself may be what kills them. */
function neverEnded({ lastError }: ClaimedWork): Error {
  return new Error(lastError ?? 'every process that did this work has died')
}

function wordsOf(error: unknown): string {
  const words = error instanceof Error ? error.message : String(error)
  return redact(words).replaceAll('\0', '').slice(0, errorCharsMax)
}
