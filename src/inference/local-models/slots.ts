import type { CancelSignal } from '#lib/cancellation.ts'
import { AppError } from '#lib/errors.ts'

/** The `Retry-After` of a full queue. */
const retryAfterS = 2

export type Slots = ReturnType<typeof createSlots>

/** A semaphore with a bounded first-in, first-out queue. */
export function createSlots({ slotsMax, queueMax }: { slotsMax: number; queueMax: number }) {
  const queue = new Set<() => void>()
  let inUse = 0
  const acquireNow = () => {
    inUse++
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      inUse--
      for (const next of queue) return next()
    }
  }
  return {
    /** Slots in use and queued requests. */
    count: () => inUse + queue.size,

    /**
     * Resolves with a function that releases the slot. Rejects with the signal's reason, or with
     * `upstream_overloaded` when the queue is full.
     */
    async acquire(signal: CancelSignal): Promise<() => void> {
      signal.throwIfAborted()
      if (inUse < slotsMax) return acquireNow()
      if (queue.size >= queueMax) {
        throw new AppError('upstream_overloaded', 'Too many requests are queued for this model.', {
          retryAfterS,
        })
      }
      return new Promise((resolve, reject) => {
        const settle = () => {
          queue.delete(next)
          signal.removeEventListener('abort', stop)
        }
        const next = () => {
          settle()
          resolve(acquireNow())
        }
        const stop = () => {
          settle()
          reject(signal.reason)
        }
        queue.add(next)
        signal.addEventListener('abort', stop, { once: true })
      })
    },
  }
}
