import type { GenerationRequest } from '#inference/request.ts'
import type { Cancellation } from '#lib/cancellation.ts'
import { AppError } from '#lib/errors.ts'
import type { Slot } from './slot.ts'

/** An attempt in progress. */
export type Running<T> = {
  readonly slot: Slot
  readonly signal: Cancellation
  readonly result: Promise<T>
}

/**
 * Waits for an attempt. After `hedgeMs` without a result a second one starts, unless `start` returns
 * null; the first to succeed wins, and the other is aborted. Rejects with the last failure.
 */
export function raceWithHedge<T>(
  first: Running<T>,
  hedgeMs: number,
  start: () => Running<T> | null,
): Promise<{ winner: Running<T>; value: T }> {
  return new Promise((resolve, reject) => {
    let second: Running<T> | null = null
    let pending = 1
    const watch = (attempt: Running<T>) => {
      attempt.result.then(
        (value) => {
          clearTimeout(timer)
          const loser = attempt === first ? second : first
          loser?.slot.lose()
          loser?.signal.abort(lost())
          resolve({ winner: attempt, value })
        },
        (error: unknown) => {
          clearTimeout(timer)
          pending--
          if (pending === 0) reject(error)
        },
      )
    }
    const timer = setTimeout(() => {
      second = start()
      if (second === null) return
      pending++
      watch(second)
    }, hedgeMs)
    watch(first)
  })
}

/** Whether a second attempt has no effects but its cost: tools that the upstream runs have others. */
export function mayHedge({ native }: GenerationRequest): boolean {
  return native === undefined
}

function lost(): AppError {
  return new AppError('client_closed', 'Another upstream gave output first.')
}
