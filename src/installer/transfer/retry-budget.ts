import { isPermanent, type LogLine } from '#installer/sources/source.ts'
import { jitteredBackoffMs } from '#lib/backoff.ts'
import { sleep } from '#lib/deadline.ts'
import type { AppError } from '#lib/errors.ts'

export type FailedAttempt = {
  readonly error: AppError
  /** Bytes received before the failure. */
  readonly bytesGained: number
  /** It was aborted for being too slow. */
  readonly isSlow: boolean
}

export type RetryBudget = ReturnType<typeof createRetryBudget>

const backoffMaxMs = 30_000
/** Failures of one file, with or without progress. */
const failuresMax = 10_000
/** A connection that received this much is reopened without backoff. */
const progressBytesMin = 65_536

/**
 * The retries of one file, shared by its connections.
 *
 * Counts attempts without progress: a new maximum of written bytes resets the count. Slow attempts
 * are counted separately, because they always make some progress.
 */
export function createRetryBudget(
  { attemptsMax, backoffMs }: { readonly attemptsMax: number; readonly backoffMs: number },
  logLine: LogLine,
) {
  let bytesMost = 0
  let fruitless = 0
  let slow = 0
  let failures = 0
  return {
    /** The number of bytes written so far. */
    progressed(bytesWritten: number): void {
      if (bytesWritten <= bytesMost) return
      bytesMost = bytesWritten
      fruitless = 0
    },
    /** A connection completed its range. */
    completed(): void {
      slow = 0
    },
    /** Waits for the backoff; throws the error if the budget is used up. */
    async failed(
      { error, bytesGained, isSlow }: FailedAttempt,
      fruitlessAttempts: number,
      signal: AbortSignal,
    ): Promise<void> {
      failures++
      fruitless++
      if (isSlow) slow++
      const attempts = Math.max(fruitless, slow)
      // A signed URL expires once; another refusal of a new one is final.
      const isRefused = isPermanent(error) && fruitlessAttempts > 1
      if (isRefused || attempts >= attemptsMax || failures >= failuresMax) throw error
      logLine('warn', `${error.message} Retrying (${attempts} of ${attemptsMax}).`)
      const pace = { firstMs: backoffMs, maxMs: backoffMaxMs }
      const jitteredMs = jitteredBackoffMs(fruitlessAttempts + 1, pace)
      const waitMs = bytesGained >= progressBytesMin ? 0 : jitteredMs
      await sleep(Math.max(waitMs, (error.retryAfterS ?? 0) * 1000), signal)
    },
  }
}
