import type { ChannelListener, Executes } from './bus.ts'

/** Wakes everyone who waits for a change of a row, in every process. Notifications may be lost. */
export type ChangeNotifier = {
  /** Wakes the subscribers of an id once the transaction commits. */
  notify(transaction: Executes, id: string): Promise<void>
  subscribe(id: string): ChangeSubscription
  /** Waits for the next notification, at most this long; the signal ends the wait. */
  wait(id: string, limitMs: number, signal: AbortSignal): Promise<void>
}

type ChangeSubscription = {
  /** Resolves on a notification since the previous call, after the limit, or when aborted. */
  next(limitMs: number, signal: AbortSignal): Promise<void>
  close(): void
}

type NotifyingDatabase = {
  listen(channel: string, listener: ChannelListener): Promise<void>
  notifyOnCommit(transaction: Executes, channel: string, payload: string): Promise<void>
}

export async function createChangeNotifier(
  database: NotifyingDatabase,
  channel: string,
): Promise<ChangeNotifier> {
  const subscribers = new Map<string, Set<() => void>>()
  const wake = (id: string) => {
    for (const wakeOne of subscribers.get(id) ?? []) wakeOne()
  }
  await database.listen(channel, {
    onMessage: wake,
    onGap: () => [...subscribers.keys()].forEach(wake),
  })

  function subscribe(id: string): ChangeSubscription {
    let isNotified = false
    let resolveNext = () => {}
    const onNotify = () => {
      isNotified = true
      resolveNext()
    }
    const all = subscribers.get(id) ?? new Set()
    subscribers.set(id, all.add(onNotify))
    return {
      async next(limitMs, signal) {
        if (!isNotified && !signal.aborted) {
          const { promise, resolve } = Promise.withResolvers<void>()
          resolveNext = resolve
          const timer = setTimeout(resolve, limitMs)
          signal.addEventListener('abort', resolveNext, { once: true })
          await promise
          clearTimeout(timer)
          signal.removeEventListener('abort', resolveNext)
        }
        isNotified = false
      },
      close() {
        all.delete(onNotify)
        if (all.size === 0 && subscribers.get(id) === all) subscribers.delete(id)
      },
    }
  }

  return {
    notify: (transaction, id) => database.notifyOnCommit(transaction, channel, id),
    subscribe,
    async wait(id, limitMs, signal) {
      const subscription = subscribe(id)
      await subscription.next(limitMs, signal)
      subscription.close()
    },
  }
}
