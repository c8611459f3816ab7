import type { RunningJob } from '#jobs/jobs.ts'
import { followSignal } from '#lib/deadline.ts'
import { withDiskFullError } from '#lib/durable-files.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import { asRecord } from '#lib/json.ts'
import { install } from './install.ts'
import type { DownloadStatus, InstallerContext } from './installer.ts'
import { createProgress, type DownloadAttempt } from './progress.ts'
import { pull } from './pull.ts'
import { runRuntime } from './run-runtime.ts'
import { downloadQueue } from './start.ts'
import { type Download, lockDownload, readDownload, updateDownload } from './store.ts'
import { type AttemptOutcome, settle } from './transitions.ts'
import { verify } from './verify.ts'

/** Counts attempts whose worker died. */
const attemptsMax = 30
/** Interval of the check for actions whose notification was lost. */
const actionPollMs = 5_000
const interrupted = new Error('the download was paused or cancelled')

/** Starts to run queued downloads of all workers. */
export function processDownloads(deps: InstallerContext): void {
  deps.jobs.process(downloadQueue, {
    concurrencyMax: deps.settings.downloadsMax,
    attemptsMax,
    run: (job) => attempt(deps, idOf(job), job.signal),
    async onFailed(job, error) {
      const row = await deps.store.query((handle) => readDownload(handle, idOf(job)))
      if (row !== undefined) await settle(deps, row, { failure: toAppError(error) })
    },
  })
}

function idOf({ payload }: RunningJob): string {
  return String(asRecord(payload)['downloadId'])
}

async function attempt(deps: InstallerContext, id: string, stopped: AbortSignal): Promise<void> {
  const row = await begin(deps, id)
  if (row === undefined) return
  if (row.wanted !== 'run') return settle(deps, row, 'interrupted')
  const { controller, release } = followSignal(stopped)
  const ended = new AbortController()
  const watching = abortOnAction(deps, { id, work: controller, ended: ended.signal })
  const progress = createProgress(deps, row)
  progress.logLine('info', row.attempts === 1 ? 'Started.' : `Resumed: attempt ${row.attempts}.`)
  let outcome: AttemptOutcome
  try {
    await perform(deps, { row, progress, signal: controller.signal })
    outcome = 'completed'
  } catch (error) {
    // The next worker resumes.
    stopped.throwIfAborted()
    outcome = controller.signal.reason === interrupted ? 'interrupted' : failureOf(error)
  } finally {
    ended.abort()
    release()
    await watching
    await progress.flush().catch(() => {})
    await progress.close()
  }
  await settle(deps, row, outcome)
}

/** Rethrows errors that are not caused by the source, so that the job is retried. */
function failureOf(thrown: unknown): AttemptOutcome {
  const error = withDiskFullError(thrown)
  if (error instanceof AppError && error.kind !== 'service_unavailable') return { failure: error }
  throw error
}

function perform(deps: InstallerContext, current: DownloadAttempt): Promise<void> {
  const { task } = current.row
  if (task.kind === 'verify') return verify(deps, current)
  if (task.kind === 'runtime') return runRuntime(deps, current, task)
  const { source } = task
  return source.kind === 'upstream'
    ? pull(deps, current, source)
    : install(deps, current, { ...task, source })
}

/** Undefined: the download is finished. */
async function begin(deps: InstallerContext, id: string): Promise<Download | undefined> {
  const { store, notifier, now } = deps
  return store.transact(async (transaction) => {
    const row = await lockDownload(transaction, id)
    if (row === undefined || row.finishedAt !== null) return undefined
    if (row.wanted !== 'run') return row
    const status = row.status === 'queued' ? firstStatus(row) : row.status
    const change = { status, attempts: row.attempts + 1, error: null }
    await updateDownload(transaction, id, change, now())
    await notifier.notify(transaction, id)
    return { ...row, ...change }
  })
}

function firstStatus({ task, files }: Download): DownloadStatus {
  if (task.kind === 'verify') return 'verifying'
  if (task.kind === 'runtime') return 'downloading'
  const isComplete = files.length > 0 && files.every(({ sha256 }) => sha256 !== null)
  return isComplete ? 'committing' : 'resolving'
}

async function abortOnAction(
  { store, notifier }: InstallerContext,
  { id, work, ended }: { id: string; work: AbortController; ended: AbortSignal },
): Promise<void> {
  const subscription = notifier.subscribe(id)
  try {
    while (!ended.aborted && !work.signal.aborted) {
      const row = await store.query((handle) => readDownload(handle, id)).catch(() => null)
      if (row === undefined || (row !== null && row.wanted !== 'run'))
        return work.abort(interrupted)
      await subscription.next(actionPollMs, ended)
    }
  } finally {
    subscription.close()
  }
}
