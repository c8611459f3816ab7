/** Limits concurrent work; excess callers wait in order. */
export function createSemaphore(slots: number) {
  const waiting = new Set<() => void>()
  let free = slots
  const release = () => {
    free += 1
    for (const wakeFirst of waiting) return wakeFirst()
  }
  const take = () => {
    free -= 1
    return release
  }
  return {
    /** Resolves with the function that releases the slot; rejects if the signal aborts first. */
    async acquire(signal: AbortSignal): Promise<() => void> {
      signal.throwIfAborted()
      if (free > 0) return take()
      const { promise, resolve, reject } = Promise.withResolvers<() => void>()
      const stopWaiting = () => {
        waiting.delete(wake)
        signal.removeEventListener('abort', abort)
      }
      const wake = () => {
        stopWaiting()
        resolve(take())
      }
      const abort = () => {
        stopWaiting()
        reject(signal.reason)
      }
      waiting.add(wake)
      signal.addEventListener('abort', abort, { once: true })
      return promise
    },
  }
}
