/** What one stream holds of an instance that it shares with others. */
export type Lease<T> = {
  readonly instance: T
  /** Marks the instance as unusable for new streams, after a trap in its code. */
  fail(): void
  /** Idempotent. */
  release(): void
}

type Entry<T> = { readonly opening: Promise<T>; streams: number }

/**
 * Instances of a WebAssembly module, each shared by up to `streamsMax` streams: a new one costs tens
 * of milliseconds, since its memory makes the engine collect all garbage. One without streams is
 * kept. The owner of a lease frees what its stream has allocated in the instance.
 */
export function createInstancePool<T>(open: () => Promise<T>, streamsMax: number) {
  const entries = new Set<Entry<T>>()

  function entryWithRoom(): Entry<T> {
    for (const entry of entries) if (entry.streams < streamsMax) return entry
    const entry = { opening: open(), streams: 0 }
    entries.add(entry)
    return entry
  }

  function drop(entry: Entry<T>): void {
    entry.streams -= 1
    const isSpare = entries.values().some((other) => other !== entry && other.streams < streamsMax)
    if (entry.streams === 0 && isSpare) entries.delete(entry)
  }

  return {
    async acquire(): Promise<Lease<T>> {
      const entry = entryWithRoom()
      entry.streams += 1
      let isReleased = false
      try {
        return {
          instance: await entry.opening,
          fail: () => void entries.delete(entry),
          release() {
            if (!isReleased) drop(entry)
            isReleased = true
          },
        }
      } catch (error) {
        entries.delete(entry)
        throw error
      }
    },
    /** Instances that accept streams. */
    size: () => entries.size,
  }
}
