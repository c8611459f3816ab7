import { createSingleFlight, setBounded } from '#lib/single-flight.ts'

/** About 1 KB each. */
export const entriesMax = 10_000

/** Verified credentials by the hash of the whole credential. */
export function createCredentialCache<V>() {
  const entries = new Map<string, V>()
  /** Replaced by each invalidation: a verification that started before must not be cached. */
  let once = createSingleFlight<V>()
  return {
    get: (id: string): V | undefined => entries.get(id),

    /** Verifies a credential and caches the result. Concurrent calls share one verification. */
    load(id: string, verify: () => Promise<V>): Promise<V> {
      const own = once
      return own(id, async () => {
        const value = await verify()
        if (own === once) setBounded(entries, id, value, entriesMax)
        return value
      })
    },

    invalidate(isAffected: (value: V) => boolean): void {
      once = createSingleFlight<V>()
      for (const [id, value] of entries) {
        if (isAffected(value)) entries.delete(id)
      }
    },
  }
}
