import type { Transaction } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import { isRunning } from './choose.ts'
import { retryFailed } from './file-store.ts'
import {
  endedStatuses,
  forwardStatuses,
  openStatuses,
  type ReindexAction,
  type ReindexStatus,
} from './reindex.ts'
import { lockPlaces, turnBack } from './routing-store.ts'
import {
  changeRun,
  findIndexState,
  isUnderWay,
  lockBeginnings,
  type Run,
  type RunChange,
} from './store.ts'

/** In which status an action changes something, and in which it has nothing to change. */
const courses: Readonly<
  Record<ReindexAction, { acts: readonly ReindexStatus[]; stays: readonly ReindexStatus[] }>
> = {
  cancel: {
    acts: forwardStatuses,
    stays: ['cancelling', ...endedStatuses],
  },
  pause: { acts: ['queued', 'running', 'verifying'], stays: ['paused'] },
  resume: { acts: ['paused'], stays: ['queued', 'running', 'verifying'] },
  retry: {
    acts: ['running', 'paused', 'needs_attention', 'completed', 'cancelling', 'reverting'],
    stays: [],
  },
  accept: { acts: openStatuses, stays: endedStatuses },
  revert: { acts: ['completed'], stays: ['reverting', 'reverted'] },
}

/** Of a run that the transaction holds. */
export async function takeAction(
  transaction: Transaction,
  run: Run,
  { action, at }: { action: ReindexAction; at: Date },
): Promise<void> {
  const { acts, stays } = courses[action]
  if (stays.includes(run.status)) return
  if (!acts.includes(run.status)) {
    const sentence = `A reindex that is ${run.status} does not take "${action}".`
    throw new AppError('conflict', sentence, { code: 'reindex_state' })
  }
  const change = await effects[action](transaction, run, at)
  await changeRun(transaction, run.id, { lastError: null, ...change }, at)
}

type Effect = (transaction: Transaction, run: Run, at: Date) => Promise<RunChange>

const effects: Readonly<Record<ReindexAction, Effect>> = {
  async cancel(transaction, run, at) {
    await lockPlaces(transaction, run)
    const from = { indexId: run.sourceIndexId, targetIndexId: run.targetIndexId }
    await turnBack(transaction, run, { from, at })
    return { status: 'cancelling', accepted: false }
  },
  pause: async () => ({ status: 'paused' }),
  resume: async (_, { startedAt }) => ({ status: startedAt === null ? 'queued' : 'running' }),
  async retry(transaction, run, at) {
    await retryFailed(transaction, run, at)
    return goOn(run)
  },
  accept: async (_, run) => ({ ...goOn(run), accepted: true }),
  revert,
}

function goOn({ status }: Run): RunChange {
  return status === 'needs_attention' ? { status: 'running' } : {}
}

async function revert(transaction: Transaction, run: Run, at: Date): Promise<RunChange> {
  const isKept = run.warmUntil !== null && run.warmUntil > at
  if (!isKept || (await findIndexState(transaction, run.sourceIndexId)) === undefined) {
    const sentence = 'The index before this reindex is kept no longer.'
    throw new AppError('gone', sentence, { code: 'source_dropped' })
  }
  await lockBeginnings(transaction)
  for (const indexId of [run.sourceIndexId, run.targetIndexId]) {
    if (await isUnderWay(transaction, indexId, run.id)) throw isRunning(null)
  }
  const places = await lockPlaces(transaction, run)
  if (places.some(({ index_id: indexId }) => indexId !== run.targetIndexId)) {
    const sentence = 'The collections have come to another index since.'
    throw new AppError('conflict', sentence, { code: 'reindex_superseded' })
  }
  await turnBack(transaction, run, {
    from: { indexId: run.targetIndexId, targetIndexId: null },
    at,
  })
  return { status: 'reverting', accepted: false, warmUntil: null, finishedAt: null }
}
