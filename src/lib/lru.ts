/** A map that evicts the least recently used entry beyond its capacity. */
export type Lru<K, V> = {
  get(key: K): V | undefined
  set(key: K, value: V): void
}

export function createLru<K, V>(entriesMax: number): Lru<K, V> {
  const entries = new Map<K, V>()
  /** The most recently used key, which repeats often and then needs no change. */
  let newest: K | undefined
  const put = (key: K, value: V) => {
    newest = key
    entries.delete(key)
    entries.set(key, value)
  }
  return {
    get(key) {
      // Many caches stay empty, and hashing a new string costs more than this.
      if (entries.size === 0) return undefined
      const value = entries.get(key)
      if (value !== undefined && key !== newest) put(key, value)
      return value
    },
    set(key, value) {
      put(key, value)
      if (entries.size <= entriesMax) return
      for (const oldest of entries.keys()) {
        entries.delete(oldest)
        return
      }
    },
  }
}
