import { AppError } from '#lib/errors.ts'
import { setBounded } from '#lib/single-flight.ts'

/** Clients that are counted; beyond, the first one is forgotten. */
const clientsMax = 10_000

/** Bounds attempts of each client per window, in this process. */
export function createAttemptLimit(options: {
  attemptsMax: number
  windowMs: number
  now: () => Date
}) {
  const { attemptsMax, windowMs, now } = options
  const windows = new Map<string, { startedMs: number; attempts: number }>()

  const currentOf = (client: string) => {
    const window = windows.get(client)
    return window !== undefined && now().getTime() - window.startedMs < windowMs
      ? window
      : undefined
  }
  return {
    /** Throws `rate_limit_exceeded` for a client without attempts left. */
    check(client: string): void {
      const window = currentOf(client)
      if (window === undefined || window.attempts < attemptsMax) return
      const waitMs = window.startedMs + windowMs - now().getTime()
      throw new AppError('rate_limit_exceeded', tooManyAttempts, {
        retryAfterS: Math.ceil(waitMs / 1000),
      })
    },
    count(client: string): void {
      const window = currentOf(client)
      if (window !== undefined) window.attempts += 1
      else setBounded(windows, client, { startedMs: now().getTime(), attempts: 1 }, clientsMax)
    },
  }
}

export const tooManyAttempts = 'Too many attempts; wait a moment.'
