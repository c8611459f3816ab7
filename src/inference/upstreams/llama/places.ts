import { AppError } from '#lib/errors.ts'

/** So many at once; so many more wait for a place, in order, and the rest is refused. */
export type Places = {
  /**
   * Resolves with what gives the place back. Rejects with the signal's reason when it aborts, and with
   * `upstream_overloaded` where no more may wait.
   */
  enter(signal: AbortSignal): Promise<() => void>
  /** In a place, or waiting for one. */
  count(): number
}

/** When a queue that is full is worth another try. */
const retryAfterS = 2

export function createPlaces({ countMax, waitingMax }: { countMax: number; waitingMax: number }) {
  const waiting = new Set<() => void>()
  let taken = 0
  const take = () => {
    taken++
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      taken--
      for (const next of waiting) return next()
    }
  }
  const places: Places = {
    count: () => taken + waiting.size,
    async enter(signal) {
      signal.throwIfAborted()
      if (taken < countMax) return take()
      if (waiting.size >= waitingMax) {
        throw new AppError('upstream_overloaded', 'Too many requests wait for this model.', {
          retryAfterS,
        })
      }
      return new Promise((resolve, reject) => {
        const settle = () => {
          waiting.delete(next)
          signal.removeEventListener('abort', stop)
        }
        const next = () => {
          settle()
          resolve(take())
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
  return places
}
