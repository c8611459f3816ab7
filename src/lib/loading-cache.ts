import { createSingleFlight, setBounded } from './single-flight.ts'

/** Values that are loaded once, and dropped when they are invalidated or the cache is full. */
export function createLoadingCache<V>({ entriesMax }: { entriesMax: number }) {
  const entries = new Map<string, V>()
  /** Replaced by each invalidation: a load that started before must not be cached. */
  let once = createSingleFlight<V>()
  return {
    get: (key: string): V | undefined => entries.get(key),

    /** Loads a value and caches it, unless `isKept` denies. Concurrent calls share one load. */
    load(key: string, work: () => Promise<V>, isKept = (_value: V) => true): Promise<V> {
      const own = once
      return own(key, async () => {
        const value = await work()
        if (own === once && isKept(value)) setBounded(entries, key, value, entriesMax)
        return value
      })
    },

    invalidate(isAffected: (value: V) => boolean = () => true): void {
      once = createSingleFlight<V>()
      for (const [key, value] of entries) {
        if (isAffected(value)) entries.delete(key)
      }
    },
  }
}
