import type { ChangeNotifier } from '#db/change-notifier.ts'
import type { Jobs, Transaction } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import { isUuid } from '#lib/uuid.ts'
import type { Log } from '#telemetry/log.ts'
import { type Download, type DownloadAction, type DownloadStatus, isTerminal } from './installer.ts'
import type { Layout } from './layout.ts'
import { enqueue } from './start.ts'
import {
  type DownloadChange,
  type DownloadRow,
  type DownloadStore,
  downloadNotFound,
  findActive,
  lockDownload,
  lockModel,
  removeLines,
  requireDownload,
  updateDownload,
  viewOf,
} from './store.ts'

/** The state transitions of a download: by its users and at the end of an attempt. */

type TransitionDeps = {
  store: DownloadStore
  notifier: ChangeNotifier
  layout: Pick<Layout, 'remove' | 'partial'>
  now: () => Date
}
type ActionDeps = TransitionDeps & { jobs: Pick<Jobs, 'add'> }
export type SettleDeps = TransitionDeps & {
  /** Notifies all workers that the installed models have changed. */
  notifyModelsChanged(): Promise<void>
  log: Pick<Log, 'info' | 'warn'>
}

/** `interrupted`: a user has paused or cancelled the download. */
export type AttemptOutcome = 'completed' | 'interrupted' | { readonly failure: AppError }

/** How long an action waits for the worker to follow. */
const effectWaitMaxMs = 2_000

/** See `Downloads.act`. */
export async function act(deps: ActionDeps, id: string, action: DownloadAction): Promise<Download> {
  return changeAndWait(deps, id, (transaction, row) => {
    if (row.finishedAt === null) return actions[action](deps, transaction, row)
    if (action === 'cancel' && row.status === 'cancelled') return Promise.resolve()
    throw new AppError('conflict', `This download is ${row.status}.`, { code: 'download_terminal' })
  })
}

/** See `Downloads.discard`. */
export async function discard(deps: ActionDeps, id: string): Promise<Download> {
  return changeAndWait(deps, id, async (transaction, row) => {
    if (row.finishedAt === null && row.task.kind === 'install') {
      const task = { ...row.task, isDiscarded: true }
      await updateDownload(transaction, id, { task }, deps.now())
      return actions.cancel(deps, transaction, { ...row, task })
    }
    if (row.finishedAt === null) return actions.cancel(deps, transaction, row)
    // A newer download of the same model may use the data.
    if ((await findActive(transaction, row.model)) === undefined) await deleteData(deps, row)
  })
}

type Action = (deps: ActionDeps, transaction: Transaction, row: DownloadRow) => Promise<void>

const actions: Readonly<Record<DownloadAction, Action>> = {
  async cancel(deps, transaction, row) {
    // No worker runs it.
    if (row.status === 'queued' || row.status === 'paused') await cancel(deps, transaction, row)
    else await change(deps, transaction, row, { wanted: 'cancel' })
  },
  async pause(deps, transaction, row) {
    if (row.status === 'paused' || row.wanted === 'cancel') return
    const status = row.status === 'queued' ? 'paused' : row.status
    await change(deps, transaction, row, { status, wanted: 'pause' })
  },
  async resume(deps, transaction, row) {
    if (row.wanted !== 'pause') return
    const status = row.status === 'paused' ? 'queued' : row.status
    await updateDownload(transaction, row.id, { status, wanted: 'run', error: null }, deps.now())
    await enqueue(deps, transaction, row.id)
  },
}

async function changeAndWait(
  { store, notifier }: ActionDeps,
  id: string,
  apply: (transaction: Transaction, row: DownloadRow) => Promise<void>,
): Promise<Download> {
  if (!isUuid(id)) throw downloadNotFound(id)
  const subscription = notifier.subscribe(id)
  try {
    const { model } = await store.query((handle) => requireDownload(handle, id))
    await store.transact(async (transaction) => {
      await lockModel(transaction, model)
      const row = await lockDownload(transaction, id)
      if (row === undefined) throw downloadNotFound(id)
      await apply(transaction, row)
    })
    const timeout = AbortSignal.timeout(effectWaitMaxMs)
    for (;;) {
      const row = await store.query((handle) => requireDownload(handle, id))
      if (isAsWanted(row) || timeout.aborted) return viewOf(row)
      await subscription.next(effectWaitMaxMs, timeout)
    }
  } finally {
    subscription.close()
  }
}

function isAsWanted({ status, wanted }: DownloadRow): boolean {
  if (wanted === 'run' || isTerminal(status)) return true
  return wanted === 'pause' && status === 'paused'
}

/** Records the outcome of an attempt. */
export async function settle(
  deps: SettleDeps,
  { id, model }: DownloadRow,
  outcome: AttemptOutcome,
): Promise<void> {
  const status = await deps.store.transact(async (transaction) => {
    await lockModel(transaction, model)
    const row = await lockDownload(transaction, id)
    if (row === undefined || row.finishedAt !== null) return null
    if (outcome === 'completed') return finish(deps, transaction, row, { status: 'completed' })
    if (outcome === 'interrupted') return interrupt(deps, transaction, row)
    const { wireCode: code, message, kind } = outcome.failure
    const error = { code, message }
    // A user can free disk space and resume.
    if (kind === 'insufficient_storage') return pause(deps, transaction, row, error)
    return finish(deps, transaction, row, { status: 'failed', error })
  })
  if (status === null) return
  deps.log.info('download attempt ended', { download_id: id, model, status })
  if (status === 'completed') await deps.notifyModelsChanged()
}

/** Null: it was resumed in the meantime and is queued. */
async function interrupt(
  deps: SettleDeps,
  transaction: Transaction,
  row: DownloadRow,
): Promise<DownloadStatus | null> {
  if (row.wanted === 'cancel') return cancel(deps, transaction, row)
  if (row.wanted === 'run') return null
  return pause(deps, transaction, row, null)
}

/** The transaction holds the locks of the model and the row. */
async function cancel(
  deps: TransitionDeps,
  transaction: Transaction,
  row: DownloadRow,
): Promise<DownloadStatus> {
  if (row.task.kind === 'install' && row.task.isDiscarded === true) await deleteData(deps, row)
  return finish(deps, transaction, row, { status: 'cancelled' })
}

async function deleteData({ layout }: TransitionDeps, { model }: DownloadRow): Promise<void> {
  await layout.remove(layout.partial(model))
}

async function pause(
  deps: TransitionDeps,
  transaction: Transaction,
  row: DownloadRow,
  error: DownloadRow['error'],
): Promise<DownloadStatus> {
  const paused = { status: 'paused', wanted: 'pause', bytesPerSecond: null, error } as const
  await change(deps, transaction, row, paused)
  return 'paused'
}

async function finish(
  deps: TransitionDeps,
  transaction: Transaction,
  row: DownloadRow,
  { status, error = null }: { status: DownloadStatus; error?: DownloadRow['error'] },
): Promise<DownloadStatus> {
  await removeLines(transaction, row.id)
  const finished = { status, error, bytesPerSecond: null, finishedAt: deps.now() }
  await change(deps, transaction, row, finished)
  return status
}

async function change(
  { notifier, now }: TransitionDeps,
  transaction: Transaction,
  { id }: DownloadRow,
  changes: DownloadChange,
): Promise<void> {
  await updateDownload(transaction, id, changes, now())
  await notifier.notify(transaction, id)
}
