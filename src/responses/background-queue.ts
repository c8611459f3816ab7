import type { Config } from '#config/schema.ts'
import type { JobProcessor, Jobs, RunningJob } from '#jobs/jobs.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import { repeat } from '#lib/repeat.ts'
import { orAfter } from '#lib/time-limit.ts'
import type { Log } from '#telemetry/log.ts'
import { endingOfQueued, failingPlan, workerLost } from './ending.ts'
import type { FrameStreamDeps } from './frame-stream.ts'
import type { ResponseRun, RunPlan } from './runs.ts'
import type { ResponseStore } from './store.ts'
import type { QueuedResponse } from './stored.ts'

/** Background responses: accepted by any worker, each run by one, in the order of acceptance. */
export type BackgroundQueue = {
  /** Throws `rate_limit_exceeded` if the key has too many unfinished background responses. */
  enqueue(response: QueuedResponse): Promise<void>
  /** Starts to run queued responses; a second call replaces `prepare`. */
  process(prepare: PrepareQueued): void
  /** Responses that this worker has claimed or is claiming, and that do not run yet. */
  starting(): readonly string[]
  /** Starts no more responses. */
  stop(): void
  close(): Promise<void>
}

export type PrepareQueued = (queued: QueuedResponse) => Promise<RunPlan>

type BackgroundQueueDeps = {
  jobs: Pick<Jobs, 'add' | 'process'>
  store: Pick<
    ResponseStore,
    'enqueue' | 'findQueued' | 'claimQueued' | 'endQueued' | 'addMissingJobs'
  >
  runnerId: string
  settings: Pick<Config['responses'], 'backgroundPerKeyMax' | 'backgroundRunningMax'>
  start(queued: QueuedResponse, plan: RunPlan): ResponseRun
  renderTerminalFrames: FrameStreamDeps['renderTerminalFrames']
  log: Pick<Log, 'warn' | 'error'>
}

/** The job queue. A job has the id of its response as key and payload. */
export const backgroundQueueName = 'response'
/** An attempt fails only if the database is unavailable or the worker dies before the claim. */
const attemptsMax = 10
/** Interval of the search for queued responses of earlier versions, which have no job. */
const missingJobsEveryMs = 60_000
const limitRetryAfterS = 5
const closeWaitMaxMs = 2_000

export function createBackgroundQueue(deps: BackgroundQueueDeps): BackgroundQueue {
  const { jobs, log, renderTerminalFrames, settings, store } = deps
  const starting = new Map<string, Promise<ResponseRun | null>>()
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

  async function run({ payload }: RunningJob): Promise<void> {
    const id = String(payload)
    const queued = await store.findQueued(id)
    // It was cancelled or deleted, or an earlier attempt has claimed it.
    if (queued === undefined) return
    const plan = await planOf(queued)
    if (isStopped) throw new Error('this worker starts no more responses')
    const started = claimAndStart(queued, plan)
    starting.set(id, started)
    const responseRun = await started.finally(() => starting.delete(id))
    await responseRun?.ended().catch(() => {})
  }

  async function planOf(queued: QueuedResponse): Promise<RunPlan> {
    try {
      return await prepare(queued)
    } catch (error) {
      const failure = toAppError(error)
      if (failure.kind === 'internal_error') {
        log.error('background response failed to start', { response_id: queued.id, error })
      }
      return failingPlan(queued, failure, renderTerminalFrames)
    }
  }

  /** Null: it is no longer queued. */
  async function claimAndStart(queued: QueuedResponse, plan: RunPlan): Promise<ResponseRun | null> {
    if (!(await store.claimQueued(queued.id, deps.runnerId))) return null
    return deps.start(queued, plan)
  }

  async function fail({ payload }: RunningJob): Promise<void> {
    const queued = await store.findQueued(String(payload))
    if (queued === undefined) return
    const { id, ownerId, object, segment } = queued
    const response = { object, last: segment.last }
    const ending = endingOfQueued(response, renderTerminalFrames, workerLost())
    await store.endQueued(ownerId, id, ending)
  }

  function stop() {
    isStopped = true
    processor?.stop()
  }

  return {
    async enqueue(response) {
      const unfinishedMax = settings.backgroundPerKeyMax
      const addJob = (transaction: Parameters<Jobs['add']>[0]) => add(transaction, response.id)
      if (!(await store.enqueue(response, { unfinishedMax, addJob }))) throw tooMany(unfinishedMax)
    },
    process(given) {
      prepare = given
      if (isStopped || processor !== undefined) return
      processor = jobs.process(backgroundQueueName, {
        concurrencyMax: settings.backgroundRunningMax,
        attemptsMax,
        run,
        onFailed: fail,
      })
      addingMissing.soon()
    },
    starting: () => [...starting.keys()],
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
