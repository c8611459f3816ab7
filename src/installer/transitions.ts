import type { Transaction } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import { isUuid } from '#lib/uuid.ts'
import {
  type DownloadAction,
  type DownloadStatus,
  type InstallerContext,
  isTerminal,
} from './installer.ts'
import { enqueue } from './start.ts'
import {
  type Download,
  type DownloadChange,
  downloadNotFound,
  findActive,
  lockDownload,
  lockModel,
  removeLines,
  requireDownload,
  updateDownload,
} from './store.ts'

/** The state transitions of a download: by its users and at the end of an attempt. */

/** `interrupted`: a user has paused or cancelled the download. */
export type AttemptOutcome = 'completed' | 'interrupted' | { readonly failure: AppError }

/** How long an action waits for the worker to follow. */
const effectWaitMaxMs = 2_000

/**
 * Resolves when the action has taken effect, or after two seconds. Idempotent. A cancelled download
 * keeps its data for the next download of the model. Throws `conflict` (`download_terminal`).
 */
export async function act(
  deps: InstallerContext,
  id: string,
  action: DownloadAction,
): Promise<Download> {
  return changeAndWait(deps, id, (transaction, row) => {
    if (row.finishedAt === null) return actions[action](deps, transaction, row)
    if (action === 'cancel' && row.status === 'cancelled') return Promise.resolve()
    throw new AppError('conflict', `This download is ${row.status}.`, { code: 'download_terminal' })
  })
}

/** Cancels the download unless it is finished, and deletes its data. */
export async function discard(deps: InstallerContext, id: string): Promise<Download> {
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

type Action = (deps: InstallerContext, transaction: Transaction, row: Download) => Promise<void>

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
  { store, notifier }: InstallerContext,
  id: string,
  apply: (transaction: Transaction, row: Download) => Promise<void>,
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
      if (isAsWanted(row) || timeout.aborted) return row
      await subscription.next(effectWaitMaxMs, timeout)
    }
  } finally {
    subscription.close()
  }
}

function isAsWanted({ status, wanted }: Download): boolean {
  if (wanted === 'run' || isTerminal(status)) return true
  return wanted === 'pause' && status === 'paused'
}

/** Records the outcome of an attempt. */
export async function settle(
  deps: InstallerContext,
  { id, model }: Download,
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
  deps: InstallerContext,
  transaction: Transaction,
  row: Download,
): Promise<DownloadStatus | null> {
  if (row.wanted === 'cancel') return cancel(deps, transaction, row)
  if (row.wanted === 'run') return null
  return pause(deps, transaction, row, null)
}

/** The transaction holds the locks of the model and the row. */
async function cancel(
  deps: InstallerContext,
  transaction: Transaction,
  row: Download,
): Promise<DownloadStatus> {
  if (row.task.kind === 'install' && row.task.isDiscarded === true) await deleteData(deps, row)
  return finish(deps, transaction, row, { status: 'cancelled' })
}

async function deleteData({ layout }: InstallerContext, { model }: Download): Promise<void> {
  await layout.remove(layout.partial(model))
}

async function pause(
  deps: InstallerContext,
  transaction: Transaction,
  row: Download,
  error: Download['error'],
): Promise<DownloadStatus> {
  const paused = { status: 'paused', wanted: 'pause', bytesPerSecond: null, error } as const
  await change(deps, transaction, row, paused)
  return 'paused'
}

async function finish(
  deps: InstallerContext,
  transaction: Transaction,
  row: Download,
  { status, error = null }: { status: DownloadStatus; error?: Download['error'] },
): Promise<DownloadStatus> {
  await removeLines(transaction, row.id)
  const finished = { status, error, bytesPerSecond: null, finishedAt: deps.now() }
  await change(deps, transaction, row, finished)
  return status
}

async function change(
  { notifier, now }: InstallerContext,
  transaction: Transaction,
  { id }: Download,
  changes: DownloadChange,
): Promise<void> {
  await updateDownload(transaction, id, changes, now())
  await notifier.notify(transaction, id)
}
