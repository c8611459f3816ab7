import type { Holder } from './current-principals.ts'
import type { Change } from './store.ts'

/** An open connection whose principal a change may concern. */
export type Watcher = {
  /** Null while it is not known: every change may concern it. */
  holder(): Holder | null
  /** Authorises the connection again; does not throw. */
  check(): Promise<void>
}

/** Concurrent checks: each may be a query of the database. */
const checksAtOnce = 16

/** Authorises open connections again after changes that may concern them. */
export function createWatchers() {
  const watchers = new Set<Watcher>()

  async function checkEach(affected: readonly Watcher[]): Promise<void> {
    const rest = affected.values()
    const lane = async () => {
      for (const watcher of rest) if (watchers.has(watcher)) await watcher.check()
    }
    await Promise.all(Array.from({ length: checksAtOnce }, lane))
  }

  return {
    /** Returns a function that ends it. */
    watch(watcher: Watcher): () => void {
      watchers.add(watcher)
      return () => watchers.delete(watcher)
    },
    /** To be called after the caches have been invalidated. */
    changed(change: Change): Promise<void> {
      return checkEach([...watchers].filter((watcher) => mayConcern(change, watcher.holder())))
    },
  }
}

function mayConcern({ what, id }: Change, holder: Holder | null): boolean {
  if (holder === null) return true
  if (what === 'key') return holder.keyId === id
  if (what === 'session') return holder.keyId === null && holder.userId === id
  if (what === 'user' || what === 'idp_groups') return holder.userId === id
  return true
}
