import type { Config } from '#config/schema.ts'
import type { JobProcessor, Jobs, RunningJob } from '#jobs/jobs.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import { repeat } from '#lib/repeat.ts'
import { orAfter } from '#lib/time-limit.ts'
import type { TraceContext } from '#lib/trace.ts'
import type { Log } from '#telemetry/log.ts'
import { endingOf, workerLost } from './ending.ts'
import type { FrameStreamDeps } from './frame-stream.ts'
import type { LocalRun } from './run.ts'
import type { RunPlan } from './runs.ts'
import type { ResponseStore } from './store.ts'
import type { QueuedResponse } from './stored.ts'

export type PrepareQueued = (queued: QueuedResponse, trace: TraceContext | null) => Promise<RunPlan>

type BackgroundQueueDeps = {
  jobs: Pick<Jobs, 'add' | 'process'>
  store: ResponseStore
  runnerId: string
  settings: Config['responses']
  start(queued: QueuedResponse, plan: RunPlan): LocalRun
  renderTerminalFrames: FrameStreamDeps['renderTerminalFrames']
  log: Log
}

/** The job queue. A job has the id of its response as key and payload. */
export const backgroundQueueName = 'response'
/** An attempt fails only if the database is unavailable or the worker dies before the claim. */
const attemptsMax = 10
/** Interval of the search for queued responses of earlier versions, which have no job. */
const missingJobsEveryMs = 60_000
const limitRetryAfterS = 5
const closeWaitMaxMs = 2_000

/** Background responses: accepted by any worker, each run by one, in the order of acceptance. */
export function createBackgroundQueue(deps: BackgroundQueueDeps) {
  const { jobs, log, renderTerminalFrames, settings, store } = deps
  const starting = new Map<string, Promise<LocalRun | null>>()
  let isStopped = false
  let processor: JobProcessor | undefined
  let prepare: PrepareQueued = () => Promise.reject(new Error('the queue is not processed'))

  const addingMissing = repeat(
    () => store.addMissingJobs(backgroundQueueName, (transaction, id) => add(transaction, id)),
    {
      everyMs: missingJobsEveryMs,
      log,
      failed: 'search for queued responses without a job failed',
    },
  )

  const add = (transaction: Parameters<Jobs['add']>[0], id: string) =>
    jobs.add(transaction, { queue: backgroundQueueName, key: id, payload: id })

  async function run({ payload, trace }: RunningJob): Promise<void> {
    const id = String(payload)
    const queued = await store.findQueued(id)
    // It was cancelled or deleted, or an earlier attempt has claimed it.
    if (queued === undefined) return
    const plan = await prepare(queued, trace).catch(toAppError)
    if (isStopped) throw new Error('this worker starts no more responses')
    if (plan instanceof AppError) return end(queued, plan)
    const started = claimAndStart(queued, plan)
    starting.set(id, started)
    const responseRun = await started.finally(() => starting.delete(id))
    await responseRun?.ended().catch(() => {})
  }

  /** Ends a queued response that cannot start. */
  async function end({ id, ownerId, object, segment }: QueuedResponse, error: AppError) {
    if (error.kind === 'internal_error') {
      log.error('background response failed to start', {
        response_id: id,
        error: error.cause ?? error,
      })
    }
    const ending = endingOf({ object, last: segment.last }, renderTerminalFrames, { error })
    await store.endQueued(ownerId, id, ending)
  }

  /** Null: it is no longer queued. */
  async function claimAndStart(queued: QueuedResponse, plan: RunPlan): Promise<LocalRun | null> {
    if (!(await store.claimQueued(queued.id, deps.runnerId))) return null
    return deps.start(queued, plan)
  }

  async function fail({ payload }: RunningJob): Promise<void> {
    const queued = await store.findQueued(String(payload))
    if (queued !== undefined) await end(queued, workerLost())
  }

  function stop() {
    isStopped = true
    processor?.stop()
  }

  return {
    /** Throws `rate_limit_exceeded` if the key has too many unfinished background responses. */
    async enqueue(response: QueuedResponse) {
      const unfinishedMax = settings.backgroundPerKeyMax
      const addJob = (transaction: Parameters<Jobs['add']>[0]) => add(transaction, response.id)
      if (!(await store.enqueue(response, { unfinishedMax, addJob }))) throw tooMany(unfinishedMax)
    },
    /** Starts to run queued responses. */
    process(given: PrepareQueued) {
      if (isStopped) return
      prepare = given
      processor = jobs.process(backgroundQueueName, {
        concurrencyMax: settings.backgroundRunningMax,
        attemptsMax,
        run,
        onFailed: fail,
      })
      addingMissing.soon()
    },
    /** Responses that this worker has claimed or is claiming, and that do not run yet. */
    starting: () => [...starting.keys()],
    /** Starts no more responses. */
    stop,
    async close() {
      stop()
      await addingMissing.stop()
      await orAfter(Promise.allSettled(starting.values()), closeWaitMaxMs, null)
    },
  }
}

function tooMany(unfinishedMax: number): AppError {
  return new AppError(
    'rate_limit_exceeded',
    `This key has reached the limit of ${unfinishedMax} unfinished background responses.`,
    { retryAfterS: limitRetryAfterS },
  )
}
