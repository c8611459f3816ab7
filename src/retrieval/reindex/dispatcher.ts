import {
  destinationOf,
  type FileProgress,
  findPending,
  hasPending,
  readFileProgress,
} from './file-store.ts'
import type { StepDeps } from './steps.ts'
import type { ReindexState } from './store.ts'

export const fileQueue = 'reindex-file'

/** Queued files continue after a pause, so their number is small. */
const queuedMax = 256
const filesPerTransaction = 64
/** Consecutive failures after which the model, not the file, is considered broken. */
const failuresMax = 20
/** Attempts after which a pending file counts as failing; a restart of an upstream takes fewer. */
const attemptsOfFailing = 5
/** Queued files are queued again after so many steps, in case jobs were lost. */
const stepsPerRequeue = 120

/** Queues the pending files of a reindex as jobs, a bounded number ahead of their completion. */
export function createDispatcher({ store, jobs }: Pick<StepDeps, 'store' | 'jobs'>) {
  const queued = new Set<string>()
  let after: string | null = null
  let failures = 0
  let steps = 0

  function enqueue(reindex: ReindexState, fileIds: readonly string[]): Promise<void> {
    const indexId = destinationOf(reindex)
    return store.transact(async (transaction) => {
      for (const fileId of fileIds) {
        await jobs.add(transaction, {
          queue: fileQueue,
          // A new version after a pause does not wait for jobs of the old one.
          key: `${fileId}:${indexId}:${reindex.version}`,
          payload: { reindexId: reindex.id, fileId, indexId },
        })
      }
    })
  }

  /** Removes ended files from the queue; returns the error of consecutive failures. */
  async function settle(reindex: ReindexState): Promise<string | null> {
    if (queued.size === 0) return null
    const progress = await store.query((handle) => readFileProgress(handle, reindex, [...queued]))
    const pending = progress.filter(({ state }) => state === 'pending')
    const ended = progress.filter(({ state }) => state !== 'pending')
    queued.clear()
    for (const { id } of pending) queued.add(id)
    for (const { state } of ended) failures = state === 'failed' ? failures + 1 : 0
    const failing = pending.filter(({ attempts, error }) => attempts >= attemptsOfFailing && error)
    const hasSuccess = ended.some(({ state }) => state !== 'failed')
    if (hasSuccess || failures + failing.length < failuresMax) return null
    return latestError([...ended, ...failing])
  }

  return {
    /** `done`: no file is pending; `failing`: the error of consecutive failures. */
    async step(reindex: ReindexState): Promise<'now' | 'later' | 'done' | { failing: string }> {
      const error = await settle(reindex)
      if (error !== null) return { failing: error }
      if (++steps % stepsPerRequeue === 0) {
        const requeued = [...queued]
        for (let start = 0; start < requeued.length; start += filesPerTransaction) {
          await enqueue(reindex, requeued.slice(start, start + filesPerTransaction))
        }
      }
      const filesMax = Math.min(queuedMax - queued.size, filesPerTransaction)
      if (filesMax <= 0) return 'later'
      const params = { after, except: [...queued], filesMax }
      const fileIds = await store.query((handle) => findPending(handle, reindex, params))
      if (fileIds.length > 0) await enqueue(reindex, fileIds)
      for (const id of fileIds) queued.add(id)
      const isEnd = fileIds.length < filesMax
      const isFromStart = after === null
      after = isEnd ? null : (fileIds.at(-1) ?? null)
      if (!isEnd) return 'now'
      if (queued.size > 0) return 'later'
      if (!isFromStart) return 'now'
      return (await store.query((handle) => hasPending(handle, reindex))) ? 'later' : 'done'
    },
  }
}

function latestError(failed: readonly FileProgress[]): string {
  const latest = failed.toSorted((one, other) => one.updated_ms - other.updated_ms).at(-1)
  return latest?.error ?? 'unknown error'
}
