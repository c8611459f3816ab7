/** Keeps a value in a cache, at the expense of the one that was put there first. */
export function remember<V>(
  cache: Map<string, V>,
  entry: { key: string; value: V; entriesMax: number },
): void {
  cache.delete(entry.key)
  cache.set(entry.key, entry.value)
  if (cache.size <= entry.entriesMax) return
  for (const oldest of cache.keys()) {
    cache.delete(oldest)
    break
  }
}

/** Answers callers who ask for the same thing at the same time with one piece of work. */
export function createSingleFlight<V>(): (key: string, work: () => Promise<V>) => Promise<V> {
  const running = new Map<string, Promise<V>>()
  return (key, work) => {
    const known = running.get(key)
    if (known !== undefined) return known
    const begun = work().finally(() => running.delete(key))
    running.set(key, begun)
    return begun
  }
}
