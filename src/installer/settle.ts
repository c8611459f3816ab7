import type { ChangeNotifier } from '#db/change-notifier.ts'
import type { Transaction } from '#jobs/jobs.ts'
import type { AppError } from '#lib/errors.ts'
import type { Log } from '#telemetry/log.ts'
import type { DownloadStatus } from './installer.ts'
import type { Layout } from './layout.ts'
import type { Outcome } from './run.ts'
import {
  changeDownload,
  type DownloadChange,
  type DownloadRow,
  type DownloadStore,
  lockDownload,
  lockModel,
  removeLines,
} from './store.ts'

export type SettleDeps = {
  store: DownloadStore
  notifier: Pick<ChangeNotifier, 'notify'>
  layout: Pick<Layout, 'remove' | 'partial'>
  /** What is installed has changed. */
  changed(): Promise<void>
  log: Pick<Log, 'info' | 'warn'>
  now: () => Date
}

/** Writes down how the work on a download came to its end, and what follows from it. */
export async function settle(
  deps: SettleDeps,
  { id, model }: DownloadRow,
  outcome: Outcome,
): Promise<void> {
  const ended = await deps.store.transact(async (transaction) => {
    await lockModel(transaction, model)
    const row = await lockDownload(transaction, id)
    if (row === undefined || row.finishedAt !== null) return null
    if (outcome === 'completed') return end(deps, transaction, { row, status: 'completed' })
    if (outcome === 'unwanted') return yieldTo(deps, transaction, row)
    return fail(deps, transaction, { row, failure: outcome.failure })
  })
  if (ended === null) return
  deps.log.info('the work on a model ended', { download_id: id, model, status: ended })
  if (ended === 'completed') await deps.changed()
}

type Ended = DownloadStatus | null

/** In the meantime it may be wanted again; then it waits for its turn. */
async function yieldTo(
  deps: SettleDeps,
  transaction: Transaction,
  row: DownloadRow,
): Promise<Ended> {
  if (row.wanted === 'cancel') return cancel(deps, transaction, row)
  if (row.wanted === 'run') return null
  return pause(deps, transaction, { row, error: null })
}

/** The transaction holds the model and the row. */
export async function cancel(
  deps: SettleDeps,
  transaction: Transaction,
  row: DownloadRow,
): Promise<Ended> {
  if (row.task.kind === 'install' && row.task.isDiscarded === true) await dropParts(deps, row)
  return end(deps, transaction, { row, status: 'cancelled' })
}

export async function dropParts({ layout }: SettleDeps, { model }: DownloadRow): Promise<void> {
  await layout.remove(layout.partial(model))
}

/** Whoever makes room can let it go on. */
function fail(
  deps: SettleDeps,
  transaction: Transaction,
  { row, failure }: { row: DownloadRow; failure: AppError },
): Promise<Ended> {
  const error = { code: failure.wireCode, message: failure.message }
  if (failure.kind === 'insufficient_storage') return pause(deps, transaction, { row, error })
  return end(deps, transaction, { row, status: 'failed', error })
}

async function pause(
  deps: SettleDeps,
  transaction: Transaction,
  { row, error }: { row: DownloadRow; error: DownloadRow['error'] },
): Promise<Ended> {
  const paused = { status: 'paused', wanted: 'pause', bytesPerSecond: null, error } as const
  await change(deps, transaction, { row, change: paused })
  return 'paused'
}

async function end(
  deps: SettleDeps,
  transaction: Transaction,
  {
    row,
    status,
    error = null,
  }: {
    row: DownloadRow
    status: 'completed' | 'failed' | 'cancelled'
    error?: DownloadRow['error']
  },
): Promise<Ended> {
  await removeLines(transaction, row.id)
  const ended = { status, error, bytesPerSecond: null, finishedAt: deps.now() }
  await change(deps, transaction, { row, change: ended })
  return status
}

async function change(
  { notifier, now }: SettleDeps,
  transaction: Transaction,
  { row, change: changed }: { row: DownloadRow; change: DownloadChange },
): Promise<void> {
  await changeDownload(transaction, row.id, changed, now())
  await notifier.notify(transaction, row.id)
}
