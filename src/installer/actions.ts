import type { ChangeNotifier } from '#db/change-notifier.ts'
import type { Transaction } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import { isUuid } from '#lib/uuid.ts'
import { type Download, type DownloadAction, isTerminal } from './installer.ts'
import { cancel, dropParts, type SettleDeps } from './settle.ts'
import { absent, demandRow, enqueue, type StartDeps } from './start.ts'
import { changeDownload, type DownloadRow, findActive, lockDownload, lockModel } from './store.ts'
import { viewOf } from './view.ts'

export type ActionDeps = SettleDeps &
  Pick<StartDeps, 'store' | 'jobs'> & { notifier: ChangeNotifier }

/** Whoever works on it stops at once, if the machine is not too busy. */
const effectWaitMaxMs = 2_000

/** See `Downloads.act`. */
export async function act(deps: ActionDeps, id: string, action: DownloadAction): Promise<Download> {
  return withEffect(deps, id, (transaction, row) => {
    if (row.finishedAt === null) return effects[action](deps, transaction, row)
    if (action === 'cancel' && row.status === 'cancelled') return Promise.resolve()
    throw new AppError('conflict', `This download is ${row.status}.`, { code: 'download_terminal' })
  })
}

/** See `Downloads.discard`. */
export async function discard(deps: ActionDeps, id: string): Promise<Download> {
  return withEffect(deps, id, async (transaction, row) => {
    if (row.finishedAt === null && row.task.kind === 'install') {
      const task = { ...row.task, isDiscarded: true }
      await changeDownload(transaction, id, { task }, deps.now())
      return effects.cancel(deps, transaction, { ...row, task })
    }
    if (row.finishedAt === null) return effects.cancel(deps, transaction, row)
    // What the next download of the same model has begun to use is not ours any more.
    if ((await findActive(transaction, row.model)) === undefined) await dropParts(deps, row)
  })
}

type Effect = (deps: ActionDeps, transaction: Transaction, row: DownloadRow) => Promise<void>

const effects: Readonly<Record<DownloadAction, Effect>> = {
  async cancel(deps, transaction, row) {
    // Nobody works on it.
    if (row.status === 'queued' || row.status === 'paused') await cancel(deps, transaction, row)
    else await want(deps, transaction, row, 'cancel')
  },
  async pause(deps, transaction, row) {
    if (row.status === 'paused' || row.wanted === 'cancel') return
    if (row.status === 'queued') {
      await changeDownload(transaction, row.id, { status: 'paused' }, deps.now())
    }
    await want(deps, transaction, row, 'pause')
  },
  async resume(deps, transaction, row) {
    if (row.wanted !== 'pause') return
    const status = row.status === 'paused' ? 'queued' : row.status
    const change = { status, wanted: 'run', error: null } as const
    await changeDownload(transaction, row.id, change, deps.now())
    await enqueue(deps, transaction, row.id)
  },
}

async function want(
  { notifier, now }: ActionDeps,
  transaction: Transaction,
  { id }: DownloadRow,
  wanted: DownloadRow['wanted'],
): Promise<void> {
  await changeDownload(transaction, id, { wanted }, now())
  await notifier.notify(transaction, id)
}

async function withEffect(
  deps: ActionDeps,
  id: string,
  change: (transaction: Transaction, row: DownloadRow) => Promise<void>,
): Promise<Download> {
  if (!isUuid(id)) throw absent(id)
  const hearing = deps.notifier.subscribe(id)
  try {
    const { model } = await deps.store.ask((handle) => demandRow(handle, id))
    await deps.store.transact(async (transaction) => {
      await lockModel(transaction, model)
      const row = await lockDownload(transaction, id)
      if (row === undefined) throw absent(id)
      await change(transaction, row)
    })
    return await comeAbout(deps, id, hearing.next)
  } finally {
    hearing.close()
  }
}

async function comeAbout(
  { store }: ActionDeps,
  id: string,
  next: (limitMs: number, signal: AbortSignal) => Promise<void>,
): Promise<Download> {
  const late = AbortSignal.timeout(effectWaitMaxMs)
  for (;;) {
    const row = await store.ask((handle) => demandRow(handle, id))
    if (isAsWanted(row) || late.aborted) return viewOf(row)
    await next(effectWaitMaxMs, late)
  }
}

function isAsWanted({ status, wanted }: DownloadRow): boolean {
  if (wanted === 'run' || isTerminal(status)) return true
  return wanted === 'pause' && status === 'paused'
}
