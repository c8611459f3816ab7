import type { Transaction } from '#jobs/jobs.ts'
import type { InstallerDatabase } from './store.ts'

/** Wakes who waits for a change of a download, in every process. */
export type Bells = {
  /** Once the transaction is committed. */
  ring(transaction: Transaction, id: string): Promise<void>
  hear(id: string): Hearing
}

type Hearing = {
  /** Until it has rung since the last time, the time is over, or the signal aborts. */
  next(limitMs: number, signal: AbortSignal): Promise<void>
  close(): void
}

const channel = 'download'

export async function createBells(
  database: Pick<InstallerDatabase, 'listen' | 'notifyOnCommit'>,
): Promise<Bells> {
  const hearers = new Map<string, Set<() => void>>()
  const wake = (id: string) => {
    for (const rouse of hearers.get(id) ?? []) rouse()
  }
  await database.listen(channel, {
    onMessage: wake,
    onGap: () => [...hearers.keys()].forEach(wake),
  })

  function hear(id: string): Hearing {
    let hasRung = false
    let rouse = () => {}
    const heard = () => {
      hasRung = true
      rouse()
    }
    const others = hearers.get(id) ?? new Set()
    hearers.set(id, others.add(heard))
    return {
      async next(limitMs, signal) {
        if (!hasRung && !signal.aborted) {
          const { promise, resolve } = Promise.withResolvers<void>()
          rouse = resolve
          const timer = setTimeout(resolve, limitMs)
          signal.addEventListener('abort', rouse, { once: true })
          await promise
          clearTimeout(timer)
          signal.removeEventListener('abort', rouse)
        }
        hasRung = false
      },
      close() {
        others.delete(heard)
        if (others.size === 0 && hearers.get(id) === others) hearers.delete(id)
      },
    }
  }

  return {
    ring: (transaction, id) => database.notifyOnCommit(transaction, channel, id),
    hear,
  }
}
