import type { Transaction } from '#db/client.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import { recordDownload } from './audit.ts'
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

/** A download in a transaction that holds the locks of its model and its row. */
type Locked = {
  readonly deps: InstallerContext
  readonly transaction: Transaction
  readonly row: Download
}

/**
 * Resolves when the action has taken effect, or after two seconds. Idempotent. A cancelled download
 * keeps its data for the next download of the model. Throws `conflict` (`download_terminal`).
 */
export async function act(
  deps: InstallerContext,
  { principal, id, action }: { principal: RequestPrincipal; id: string; action: DownloadAction },
): Promise<Download> {
  return changeAndWait(deps, { principal, id, action }, async (locked) => {
    const { status, finishedAt } = locked.row
    if (finishedAt === null) return actions[action](locked)
    if (action === 'cancel' && status === 'cancelled') return
    throw new AppError('conflict', `This download is ${status}.`, { code: 'download_terminal' })
  })
}

/** Cancels the download unless it is finished, and deletes its data. */
export async function discard(
  deps: InstallerContext,
  { principal, id }: { principal: RequestPrincipal; id: string },
): Promise<Download> {
  return changeAndWait(deps, { principal, id, action: 'discard' }, async (locked) => {
    const { transaction, row } = locked
    if (row.finishedAt !== null) {
      // A newer download of the same model may use the data.
      if ((await findActive(transaction, row.model)) === undefined) await deleteData(locked)
      return
    }
    if (row.task.kind === 'verify') return actions.cancel(locked)
    const task = { ...row.task, isDiscarded: true }
    await updateDownload(transaction, id, { task }, deps.now())
    await actions.cancel({ ...locked, row: { ...row, task } })
  })
}

const actions: Readonly<Record<DownloadAction, (locked: Locked) => Promise<void>>> = {
  async cancel(locked) {
    const { status } = locked.row
    // No worker runs it.
    if (status === 'queued' || status === 'paused') await cancel(locked)
    else await change(locked, { wanted: 'cancel' })
  },
  async pause(locked) {
    const { status, wanted } = locked.row
    if (status === 'paused' || wanted === 'cancel') return
    await change(locked, { status: status === 'queued' ? 'paused' : status, wanted: 'pause' })
  },
  async resume({ deps, transaction, row }) {
    if (row.wanted !== 'pause') return
    const status = row.status === 'paused' ? 'queued' : row.status
    await updateDownload(transaction, row.id, { status, wanted: 'run', error: null }, deps.now())
    await enqueue(deps, transaction, row.id)
  },
}

async function changeAndWait(
  deps: InstallerContext,
  { principal, id, action }: { principal: RequestPrincipal; id: string; action: string },
  apply: (locked: Locked) => Promise<void>,
): Promise<Download> {
  const { store, notifier } = deps
  if (!isUuid(id)) throw downloadNotFound(id)
  const subscription = notifier.subscribe(id)
  try {
    const { model } = await store.query((handle) => requireDownload(handle, id))
    await store.transact(async (transaction) => {
      await lockModel(transaction, model)
      const row = await lockDownload(transaction, id)
      if (row === undefined) throw downloadNotFound(id)
      await apply({ deps, transaction, row })
      const after = await requireDownload(transaction, id)
      await recordDownload(transaction, principal, { action, before: row, after, at: deps.now() })
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
    const locked = { deps, transaction, row }
    if (outcome === 'completed') return finish(locked, 'completed')
    if (outcome === 'interrupted') return interrupt(locked)
    const { wireCode: code, message, kind } = outcome.failure
    const error = { code, message }
    // A user can free disk space and resume.
    if (kind === 'insufficient_storage') return pause(locked, error)
    return finish(locked, 'failed', error)
  })
  if (status === null) return
  deps.log.info('download attempt ended', { download_id: id, model, status })
  if (status === 'completed') await deps.notifyModelsChanged()
}

/** Null: it was resumed in the meantime and is queued. */
async function interrupt(locked: Locked): Promise<DownloadStatus | null> {
  const { wanted } = locked.row
  if (wanted === 'cancel') return cancel(locked)
  return wanted === 'run' ? null : pause(locked, null)
}

async function cancel(locked: Locked): Promise<DownloadStatus> {
  const { task } = locked.row
  if (task.kind !== 'verify' && task.isDiscarded === true) await deleteData(locked)
  return finish(locked, 'cancelled')
}

async function deleteData({ deps: { layout }, row: { model } }: Locked): Promise<void> {
  await layout.remove(layout.partial(model))
}

async function pause(locked: Locked, error: Download['error']): Promise<DownloadStatus> {
  await change(locked, { status: 'paused', wanted: 'pause', bytesPerSecond: null, error })
  return 'paused'
}

async function finish(
  locked: Locked,
  status: DownloadStatus,
  error: Download['error'] = null,
): Promise<DownloadStatus> {
  const { deps, transaction, row } = locked
  await removeLines(transaction, row.id)
  await change(locked, { status, error, bytesPerSecond: null, finishedAt: deps.now() })
  return status
}

async function change({ deps, transaction, row }: Locked, changes: DownloadChange): Promise<void> {
  await updateDownload(transaction, row.id, changes, deps.now())
  await deps.notifier.notify(transaction, row.id)
}
