import type { Jobs } from '#jobs/jobs.ts'
import { aimOf, findPending, type Progress, readProgress } from './file-store.ts'
import type { Run, runStore } from './store.ts'

/** Hands the files of a reindex out as work, a few ahead of those that are done. */
export type Feed = {
  /**
   * `more`: there may be more to hand out at once; `busy`: all that may be under way is; `empty`: no
   * file waits any more; or why one file after the other has failed.
   */
  step(run: Run): Promise<'more' | 'busy' | 'empty' | { failing: string }>
}

export type FeedDeps = {
  store: Pick<ReturnType<typeof runStore>, 'ask' | 'transact'>
  jobs: Pick<Jobs, 'add'>
}

export const fileQueue = 'reindex-file'

/** What is handed out does not stop with a pause at once, so it is little. */
const aheadMax = 256
/** Of one transaction. */
const batchMax = 64
/** So many failures one after the other say that it is not the files. */
const failuresMax = 20
/** A file that was tried so often counts as failed here: a restart of a server takes less. */
const triesOfFailing = 5
/** Work that got lost in any way is handed out again after so many looks. */
const looksPerRound = 120

export function createFeed({ store, jobs }: FeedDeps): Feed {
  const asked = new Set<string>()
  let after: string | null = null
  let failures = 0
  let looks = 0

  function handOut(run: Run, fileIds: readonly string[]): Promise<void> {
    const indexId = aimOf(run)
    return store.transact(async (transaction) => {
      for (const fileId of fileIds) {
        await jobs.add(transaction, {
          queue: fileQueue,
          // After a pause the work of before it is not waited for.
          key: `${fileId}:${indexId}:${run.version}`,
          payload: { reindexId: run.id, fileId, indexId },
        })
      }
    })
  }

  /** Looks at what was handed out; says why, where nothing comes of it. */
  async function look(run: Run): Promise<string | null> {
    if (asked.size === 0) return null
    const progress = await store.ask((handle) => readProgress(handle, run, [...asked]))
    const waiting = progress.filter(({ state }) => state === 'pending')
    const ended = progress.filter(({ state }) => state !== 'pending')
    asked.clear()
    for (const { id } of waiting) asked.add(id)
    for (const { state } of ended) failures = state === 'failed' ? failures + 1 : 0
    const failing = waiting.filter(({ attempts, error }) => attempts >= triesOfFailing && error)
    const isAnyDone = ended.some(({ state }) => state !== 'failed')
    if (isAnyDone || failures + failing.length < failuresMax) return null
    return lastErrorOf([...ended, ...failing])
  }

  return {
    async step(run) {
      const reason = await look(run)
      if (reason !== null) return { failing: reason }
      if (++looks % looksPerRound === 0) {
        const lost = [...asked]
        for (let at = 0; at < lost.length; at += batchMax) {
          await handOut(run, lost.slice(at, at + batchMax))
        }
      }
      const room = Math.min(aheadMax - asked.size, batchMax)
      if (room <= 0) return 'busy'
      const from = { after, except: [...asked], filesMax: room }
      const fileIds = await store.ask((handle) => findPending(handle, run, from))
      if (fileIds.length > 0) await handOut(run, fileIds)
      for (const id of fileIds) asked.add(id)
      const hasComeRound = fileIds.length < room
      const isFirstRound = after === null
      after = hasComeRound ? null : (fileIds.at(-1) ?? null)
      if (!hasComeRound) return 'more'
      if (asked.size > 0) return 'busy'
      return isFirstRound ? 'empty' : 'more'
    },
  }
}

function lastErrorOf(failed: readonly Progress[]): string {
  const latest = failed.toSorted((one, other) => one.updated_ms - other.updated_ms).at(-1)
  return latest?.error ?? 'no reason was given'
}
