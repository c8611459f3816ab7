import type { RunningJob } from '#jobs/jobs.ts'
import { followSignal } from '#lib/deadline.ts'
import { toAppError } from '#lib/errors.ts'
import { asRecord } from '#lib/json.ts'
import { moveBackward } from './backward.ts'
import { dropSource, reindexQueue } from './cleanup.ts'
import { createDispatcher, fileQueue } from './dispatcher.ts'
import { destinationOf } from './file-store.ts'
import { collectFiles, moveForward, verify } from './forward.ts'
import { isBackward, type ReindexStatus } from './reindex.ts'
import { changeIfCurrent, type DriverPosition, type NextStep, type StepDeps } from './steps.ts'
import { findReindex, type ReindexState } from './store.ts'

/** Drivers mostly wait. */
const driversMax = 16
/** A driver ends with its reindex; attempts count lost workers. */
const driverAttemptsMax = 1_000_000
/** Fewer than uploads have, which use a queue of their own. */
const concurrentFilesMax = 2
const fileAttemptsMax = 15
/** Interval of checks whether a file is still needed, in case a notification was lost. */
const recheckMs = 5_000
/** Consecutive failed steps after which a reindex pauses. */
const failuresMax = 20
const retryDelayMs = { min: 500, max: 15_000 }

/** The abort reason for files that a pause or a cancellation makes unnecessary. */
const superseded = new Error('the status of the reindex has changed')
const movingStatuses: readonly ReindexStatus[] = ['running', 'completed', 'cancelling', 'reverting']

type FileTask = { readonly reindexId: string; readonly fileId: string; readonly indexId: number }

/** Processes the jobs of all reindexes in this worker. */
export function processReindexJobs(deps: StepDeps): void {
  const { store, notifier, ingest, jobs } = deps
  jobs.process(reindexQueue, {
    concurrencyMax: driversMax,
    attemptsMax: driverAttemptsMax,
    run({ payload, signal }) {
      const { reindexId, task } = asRecord(payload)
      const run = task === 'drop' ? dropSource : driveReindex
      return run(deps, String(reindexId), signal)
    },
    onFailed: async () => {},
  })

  async function isNeeded({ reindexId, indexId }: FileTask): Promise<boolean> {
    const reindex = await store.query((handle) => findReindex(handle, reindexId))
    return (
      reindex !== undefined &&
      movingStatuses.includes(reindex.status) &&
      destinationOf(reindex) === indexId
    )
  }

  /** Long files would otherwise occupy the queue after a pause. */
  async function abortWhenSuperseded(task: FileTask, work: AbortController, ended: AbortSignal) {
    while (!ended.aborted) {
      await notifier.wait(task.reindexId, recheckMs, ended)
      if (ended.aborted) return
      if (!(await isNeeded(task).catch(() => true))) return work.abort(superseded)
    }
  }

  jobs.process(fileQueue, {
    concurrencyMax: concurrentFilesMax,
    attemptsMax: fileAttemptsMax,
    async run(job) {
      const task = readTask(job)
      if (!(await isNeeded(task))) return
      const { controller, release } = followSignal(job.signal)
      const ended = new AbortController()
      const watching = abortWhenSuperseded(task, controller, ended.signal)
      try {
        await ingest.ingestFile(task, controller.signal)
      } catch (error) {
        if (controller.signal.reason !== superseded) throw error
      } finally {
        ended.abort()
        release()
        await watching
      }
    },
    async onFailed(job, error) {
      const task = readTask(job)
      if (await isNeeded(task)) await ingest.failFile(task, error)
    },
  })
}

function readTask({ payload }: RunningJob): FileTask {
  const { reindexId, fileId, indexId } = asRecord(payload)
  return { reindexId: String(reindexId), fileId: String(fileId), indexId: Number(indexId) }
}

/**
 * Runs the steps of a reindex until it ends or needs a user. Every step starts from the database, so
 * any worker can run the next one.
 */
async function driveReindex(deps: StepDeps, id: string, signal: AbortSignal): Promise<void> {
  const { store, notifier, log } = deps
  let position: DriverPosition | undefined
  for (let failures = 0; ; ) {
    signal.throwIfAborted()
    let reindex: ReindexState | undefined
    try {
      reindex = await store.query((handle) => findReindex(handle, id))
      if (reindex === undefined) return
      const { version } = reindex
      if (position?.version !== version) {
        position = { version, dispatcher: createDispatcher(deps), collection: 0, after: null }
      }
      const next = await runStep(deps, reindex, { position, signal })
      failures = 0
      if (next === 'stop') return
      if (next === 'later') await notifier.wait(id, deps.pollMs, signal)
    } catch (error) {
      signal.throwIfAborted()
      failures += 1
      log.warn('reindex step failed', { reindex_id: id, error })
      if (failures >= failuresMax && reindex !== undefined) {
        await pause(deps, reindex, error).catch(() => {})
      }
      const delayMs = retryDelayMs.min * 2 ** Math.min(failures, failuresMax)
      await notifier.wait(id, Math.min(delayMs, retryDelayMs.max), signal)
    }
  }
}

async function runStep(
  deps: StepDeps,
  reindex: ReindexState,
  { position, signal }: { position: DriverPosition; signal: AbortSignal },
): Promise<NextStep> {
  switch (reindex.status) {
    case 'queued':
      return collectFiles(deps, reindex, position)
    case 'running':
      return moveForward(deps, reindex, position)
    case 'verifying':
      return verify(deps, reindex, signal)
    case 'cancelling':
    case 'reverting':
      return moveBackward(deps, reindex, { position, signal })
    case 'completed': {
      // Retries of failed files are possible after completion.
      const dispatched = await position.dispatcher.step(reindex)
      if (typeof dispatched === 'object') return 'later'
      return dispatched === 'done' ? 'stop' : dispatched
    }
    default:
      return 'stop'
  }
}

/** A move back never pauses, since its files would stay in two indexes. */
async function pause(deps: StepDeps, reindex: ReindexState, error: unknown): Promise<void> {
  const lastError = `The reindex cannot continue: ${toAppError(error).message}`
  if (isBackward(reindex.status) && reindex.lastError === lastError) return
  await changeIfCurrent(deps, reindex, async (_, { status }) =>
    isBackward(status) || status === 'completed' ? { lastError } : { status: 'paused', lastError },
  )
}
