import type { Transaction } from '#db/client.ts'
import { AppError } from '#lib/errors.ts'
import { retryFailed } from './file-store.ts'
import { reindexRunning } from './plan.ts'
import {
  endedStatuses,
  forwardStatuses,
  openStatuses,
  type ReindexAction,
  type ReindexStatus,
} from './reindex.ts'
import { lockCollections, reverseRouting } from './routing-store.ts'
import {
  findIndexState,
  isIndexBusy,
  lockStarts,
  type ReindexChange,
  type ReindexState,
  updateReindex,
} from './store.ts'

/** The statuses in which an action has an effect, and those in which it is already done. */
const transitions: Readonly<
  Record<ReindexAction, { from: readonly ReindexStatus[]; done: readonly ReindexStatus[] }>
> = {
  cancel: { from: forwardStatuses, done: ['cancelling', ...endedStatuses] },
  pause: { from: ['queued', 'running', 'verifying'], done: ['paused'] },
  resume: { from: ['paused'], done: ['queued', 'running', 'verifying'] },
  retry: {
    from: ['running', 'paused', 'needs_attention', 'completed', 'cancelling', 'reverting'],
    done: [],
  },
  accept: { from: openStatuses, done: endedStatuses },
  revert: { from: ['completed'], done: ['reverting', 'reverted'] },
}

/** Under the lock of the reindex. */
export async function applyAction(
  transaction: Transaction,
  reindex: ReindexState,
  { action, at }: { action: ReindexAction; at: Date },
): Promise<void> {
  const { from, done } = transitions[action]
  if (done.includes(reindex.status)) return
  if (!from.includes(reindex.status)) {
    const message = `A reindex of status ${reindex.status} does not accept "${action}".`
    throw new AppError('conflict', message, { code: 'reindex_state' })
  }
  const change = await effects[action](transaction, reindex, at)
  await updateReindex(transaction, reindex.id, { lastError: null, ...change }, at)
}

type Effect = (transaction: Transaction, reindex: ReindexState, at: Date) => Promise<ReindexChange>

const effects: Readonly<Record<ReindexAction, Effect>> = {
  async cancel(transaction, reindex, at) {
    await lockCollections(transaction, reindex)
    const from = { indexId: reindex.sourceIndexId, targetIndexId: reindex.targetIndexId }
    await reverseRouting(transaction, reindex, { from, at })
    return { status: 'cancelling', accepted: false }
  },
  pause: async () => ({ status: 'paused' }),
  resume: async (_, { startedAt }) => ({ status: startedAt === null ? 'queued' : 'running' }),
  async retry(transaction, reindex, at) {
    await retryFailed(transaction, reindex, at)
    return continued(reindex)
  },
  accept: async (_, reindex) => ({ ...continued(reindex), accepted: true }),
  revert,
}

function continued({ status }: ReindexState): ReindexChange {
  return status === 'needs_attention' ? { status: 'running' } : {}
}

async function revert(
  transaction: Transaction,
  reindex: ReindexState,
  at: Date,
): Promise<ReindexChange> {
  const { sourceIndexId, targetIndexId, warmUntil } = reindex
  const isRetained = warmUntil !== null && warmUntil > at
  if (!isRetained || (await findIndexState(transaction, sourceIndexId)) === undefined) {
    const message = 'The source index is no longer retained.'
    throw new AppError('gone', message, { code: 'source_dropped' })
  }
  await lockStarts(transaction)
  for (const indexId of [sourceIndexId, targetIndexId]) {
    if (await isIndexBusy(transaction, indexId, reindex.id)) throw reindexRunning(null)
  }
  const collections = await lockCollections(transaction, reindex)
  if (collections.some(({ index_id: indexId }) => indexId !== targetIndexId)) {
    const message = 'The collections have moved to another index since.'
    throw new AppError('conflict', message, { code: 'reindex_superseded' })
  }
  const from = { indexId: targetIndexId, targetIndexId: null }
  await reverseRouting(transaction, reindex, { from, at })
  return { status: 'reverting', accepted: false, warmUntil: null, finishedAt: null }
}
