import type { Admit, Reservation } from '#inference/inference.ts'
import { AppError } from '#lib/errors.ts'

/** A waiting call is tried again at least this often, since limits and other calls change. */
const retryMaxMs = 5_000
const waitMaxMs = 600_000

/** Background responses have no client that could retry, so they wait for a limit before they fail. */
export function withWaiting(admit: Admit, sleep: (ms: number) => Promise<void>): Admit {
  const wait = async (
    refused: unknown,
    ...call: Parameters<Admit>
  ): Promise<Reservation | null> => {
    const { signal } = call[1].context
    let error = refused
    let waitedMs = 0
    while (error instanceof AppError && error.kind === 'rate_limit_exceeded') {
      if (signal.aborted || waitedMs >= waitMaxMs) break
      const pauseMs = Math.min(retryMaxMs, (error.retryAfterS ?? 1) * 1_000)
      await sleep(pauseMs)
      waitedMs += pauseMs
      try {
        return await admit(...call)
      } catch (again) {
        error = again
      }
    }
    throw error
  }
  return (kind, call, model, input) => {
    if (call.context.priority !== 'background') return admit(kind, call, model, input)
    try {
      const admitted = admit(kind, call, model, input)
      return admitted instanceof Promise
        ? admitted.catch((error: unknown) => wait(error, kind, call, model, input))
        : admitted
    } catch (error) {
      return wait(error, kind, call, model, input)
    }
  }
}
