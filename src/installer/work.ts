import type { ChangeNotifier } from '#db/change-notifier.ts'
import type { Jobs, RunningJob } from '#jobs/jobs.ts'
import { followSignal } from '#lib/deadline.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import { asRecord } from '#lib/json.ts'
import { type InstallDeps, install } from './install.ts'
import type { DownloadStatus } from './installer.ts'
import { createProgress, type ProgressDeps } from './progress.ts'
import { type PullDeps, pull } from './pull.ts'
import type { Outcome, Run } from './run.ts'
import { type SettleDeps, settle } from './settle.ts'
import { changeDownload, type DownloadRow, lockDownload, readDownload } from './store.ts'
import { orDiskFull } from './transfer/disk-full.ts'
import { type CheckDeps, checkAgain } from './verify.ts'

export const downloadQueue = 'download'

export type WorkDeps = ProgressDeps &
  InstallDeps &
  PullDeps &
  CheckDeps &
  SettleDeps & { notifier: ChangeNotifier; settings: { readonly downloadsMax: number } }

/** A process that dies is a try as well. */
const attemptsMax = 30
/** A message may get lost. */
const wantedLookMs = 5_000
const unwanted = new Error('the download is wanted otherwise')

/** Takes downloads up, whoever has begun them. */
export function takeUpDownloads(deps: WorkDeps, jobs: Pick<Jobs, 'process'>): void {
  jobs.process(downloadQueue, {
    concurrencyMax: deps.settings.downloadsMax,
    attemptsMax,
    run: (job) => take(deps, idOf(job), job.signal),
    async onFailed(job, error) {
      const row = await deps.store.ask((handle) => readDownload(handle, idOf(job)))
      if (row !== undefined) await settle(deps, row, { failure: toAppError(error) })
    },
  })
}

function idOf({ payload }: RunningJob): string {
  return String(asRecord(payload)['downloadId'])
}

async function take(deps: WorkDeps, id: string, stopped: AbortSignal): Promise<void> {
  const row = await begin(deps, id)
  if (row === undefined) return
  if (row.wanted !== 'run') return settle(deps, row, 'unwanted')
  const { controller, release } = followSignal(stopped)
  const ended = new AbortController()
  const watching = abortWhenUnwanted(deps, { id, work: controller, ended: ended.signal })
  const progress = createProgress(deps, row)
  progress.say('info', row.attempts === 1 ? 'The work begins.' : `It goes on: try ${row.attempts}.`)
  let outcome: Outcome
  try {
    await perform(deps, { row, progress, signal: controller.signal })
    outcome = 'completed'
  } catch (error) {
    // The next process goes on where this one stops.
    stopped.throwIfAborted()
    outcome = controller.signal.reason === unwanted ? 'unwanted' : { failure: failureOf(error) }
  } finally {
    ended.abort()
    release()
    await watching
    await progress.flush().catch(() => {})
    await progress.close()
  }
  await settle(deps, row, outcome)
}

/** What is no matter of the source is thrown, so that the work is tried again later. */
function failureOf(thrown: unknown): AppError {
  const error = orDiskFull(thrown)
  if (error instanceof AppError && error.kind !== 'service_unavailable') return error
  throw error
}

function perform(deps: WorkDeps, run: Run): Promise<void> {
  const { task } = run.row
  if (task.kind === 'verify') return checkAgain(deps, run)
  const { source } = task
  return source.kind === 'upstream'
    ? pull(deps, run, source)
    : install(deps, run, { ...task, source })
}

/** Undefined where nothing is to be done any more. */
async function begin(deps: WorkDeps, id: string): Promise<DownloadRow | undefined> {
  const { store, notifier, now } = deps
  return store.transact(async (transaction) => {
    const row = await lockDownload(transaction, id)
    if (row === undefined || row.finishedAt !== null) return undefined
    if (row.wanted !== 'run') return row
    const status = row.status === 'queued' ? firstStatus(row) : row.status
    const change = { status, attempts: row.attempts + 1, error: null }
    await changeDownload(transaction, id, change, now())
    await notifier.notify(transaction, id)
    return { ...row, ...change }
  })
}

function firstStatus({ task, files }: DownloadRow): DownloadStatus {
  if (task.kind === 'verify') return 'verifying'
  const isWhole = files.length > 0 && files.every(({ sha256 }) => sha256 !== null)
  return isWhole ? 'committing' : 'resolving'
}

async function abortWhenUnwanted(
  { store, notifier }: WorkDeps,
  { id, work, ended }: { id: string; work: AbortController; ended: AbortSignal },
): Promise<void> {
  const hearing = notifier.subscribe(id)
  try {
    while (!ended.aborted && !work.signal.aborted) {
      const row = await store.ask((handle) => readDownload(handle, id)).catch(() => null)
      if (row === undefined || (row !== null && row.wanted !== 'run')) return work.abort(unwanted)
      await hearing.next(wantedLookMs, ended)
    }
  } finally {
    hearing.close()
  }
}
