/** Sets an entry of a bounded cache, which then drops the entry that was set first. */
export function setBounded<V>(
  cache: Map<string, V>,
  key: string,
  value: V,
  entriesMax: number,
): void {
  cache.delete(key)
  cache.set(key, value)
  if (cache.size <= entriesMax) return
  for (const oldest of cache.keys()) {
    cache.delete(oldest)
    break
  }
}

/** Concurrent calls with the same key share one execution. */
export function createSingleFlight<V>(): (key: string, work: () => Promise<V>) => Promise<V> {
  const running = new Map<string, Promise<V>>()
  return (key, work) => {
    const current = running.get(key)
    if (current !== undefined) return current
    const started = work().finally(() => running.delete(key))
    running.set(key, started)
    return started
  }
}
