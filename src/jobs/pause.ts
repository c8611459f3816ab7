import { AppError } from '#lib/errors.ts'

/** The pause after the first failure; it doubles with each one. */
const pauseMinMs = 1_000
const pauseMaxMs = 600_000
/** The longest Retry-After that is believed. */
const retryAfterMaxMs = 3_600_000

/**
 * How long work rests after its try number `attempt` failed: doubling, jittered so that what failed
 * together does not come back together, and no shorter than what the failure itself asks for.
 */
export function pauseAfterFailureMs(error: unknown, attempt: number): number {
  const doubledMs = Math.min(pauseMinMs * 2 ** (attempt - 1), pauseMaxMs)
  const jitteredMs = (0.5 + Math.random() / 2) * doubledMs
  const askedMs = error instanceof AppError ? (error.retryAfterS ?? 0) * 1000 : 0
  return Math.max(jitteredMs, Math.min(askedMs, retryAfterMaxMs))
}
