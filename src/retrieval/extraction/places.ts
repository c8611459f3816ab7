/** So many at once; whoever comes later waits for a place, in order. */
export type Places = {
  /** Resolves with what gives the place back; rejects with the signal's reason when it aborts. */
  enter(signal: AbortSignal): Promise<() => void>
}

export function createPlaces(countMax: number): Places {
  const waiting = new Set<() => void>()
  let free = countMax
  const leave = () => {
    free += 1
    for (const next of waiting) return next()
  }
  const taken = () => {
    free -= 1
    return leave
  }
  return {
    async enter(signal) {
      signal.throwIfAborted()
      if (free > 0) return taken()
      return new Promise((resolve, reject) => {
        const settle = () => {
          waiting.delete(next)
          signal.removeEventListener('abort', stop)
        }
        const next = () => {
          settle()
          resolve(taken())
        }
        const stop = () => {
          settle()
          reject(signal.reason)
        }
        waiting.add(next)
        signal.addEventListener('abort', stop, { once: true })
      })
    },
  }
}
