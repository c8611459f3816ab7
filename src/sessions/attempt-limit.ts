import { AppError } from '#lib/errors.ts'
import { setBounded } from '#lib/single-flight.ts'
import type { AttemptStore } from './attempt-store.ts'

/** Clients whose attempts are counted; beyond, those whose windows end first are forgotten. */
const clientsMax = 10_000
/** Attempts of this process between two sweeps; the table has so many rows more at most. */
const sweepEveryAttempts = 100

/**
 * Bounds attempts of each client per window, over all workers and replicas. An attempt counts before it is
 * made, so concurrent ones do not exceed the limit. A refused client is remembered here: its further
 * attempts cost no statement.
 */
export function createAttemptLimit(options: {
  store: AttemptStore
  /** What is attempted; clients have a window for each. */
  kind: string
  attemptsMax: number
  windowMs: number
}) {
  const { store, kind, attemptsMax, windowMs } = options
  const refusedUntilMs = new Map<string, number>()
  let attempts = 0

  const hashOf = (client: string) =>
    new Bun.CryptoHasher('sha256').update(`${kind}\0${client}`).digest()

  const requireNotRefused = (client: string) => {
    const waitMs = (refusedUntilMs.get(client) ?? 0) - performance.now()
    if (waitMs <= 0) return
    throw new AppError('rate_limit_exceeded', tooManyAttempts, {
      retryAfterS: Math.ceil(waitMs / 1000),
    })
  }

  /** Throws `rate_limit_exceeded` for a client without attempts left. */
  async function take(client: string): Promise<void> {
    requireNotRefused(client)
    const taken = await store.take(hashOf(client), { attemptsMax, windowMs })
    if (taken !== 'taken') {
      setBounded(refusedUntilMs, client, performance.now() + taken.waitMs, clientsMax)
      return requireNotRefused(client)
    }
    attempts++
    if (attempts % sweepEveryAttempts === 0) await store.sweep(clientsMax)
  }

  return {
    take,
    /** Does the work of an attempt, which does not count if it succeeds. */
    async attempt<T>(client: string, work: () => Promise<T>): Promise<T> {
      await take(client)
      const result = await work()
      // Otherwise it counts, which is safe.
      await store.giveBack(hashOf(client)).catch(() => {})
      return result
    },
  }
}

export const tooManyAttempts = 'Too many attempts; wait a moment.'
