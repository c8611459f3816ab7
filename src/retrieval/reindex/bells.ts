import type { Transaction } from '#jobs/jobs.ts'
import type { ReindexDatabase } from './store.ts'

/** Wakes who waits for a change of the course of a reindex, in every process. */
export type Bells = {
  /** Once the transaction is committed. */
  ring(transaction: Transaction, id: string): Promise<void>
  /** Until it rings, the time is over, or the signal aborts. */
  wait(id: string, limitMs: number, signal: AbortSignal): Promise<void>
}

const channel = 'reindex'

export async function createBells(
  database: Pick<ReindexDatabase, 'listen' | 'notifyOnCommit'>,
): Promise<Bells> {
  const waiting = new Map<string, Set<() => void>>()
  const wake = (id: string) => {
    for (const rouse of waiting.get(id) ?? []) rouse()
  }
  await database.listen(channel, {
    onMessage: wake,
    onGap: () => [...waiting.keys()].forEach(wake),
  })
  return {
    ring: (transaction, id) => database.notifyOnCommit(transaction, channel, id),
    async wait(id, limitMs, signal) {
      if (signal.aborted) return
      const { promise, resolve } = Promise.withResolvers<void>()
      const sleepers = waiting.get(id) ?? new Set()
      waiting.set(id, sleepers.add(resolve))
      const timer = setTimeout(resolve, limitMs)
      signal.addEventListener('abort', () => resolve(), { once: true })
      await promise
      clearTimeout(timer)
      sleepers.delete(resolve)
      if (sleepers.size === 0 && waiting.get(id) === sleepers) waiting.delete(id)
    },
  }
}
