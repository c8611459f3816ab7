import type { Say } from '#installer/sources/source.ts'
import { sleep } from '#lib/deadline.ts'
import type { AppError } from '#lib/errors.ts'

export type FailedTry = {
  readonly error: AppError
  /** Bytes that it brought nevertheless. */
  readonly bytesGained: number
  /** Whether it was given up because it brought too little in its time. */
  readonly isSlow: boolean
}

/** How often one file is tried; all its connections share it. */
export type Patience = {
  /** So many bytes are there now. */
  gained(bytes: number): void
  /** A connection brought what was asked of it. */
  filled(): void
  /** Waits until it may be tried again; throws the failure where it was the last. */
  failed(tried: FailedTry, triesInVain: number, signal: AbortSignal): Promise<void>
}

const pauseMaxMs = 30_000
/** Whatever they bring, so many cuts are no download. */
const failuresMax = 10_000
/** A connection that brought this much is worth to be made again at once. */
const goodBytesMin = 65_536

/**
 * Tries that bring nothing new are counted; one byte more than ever before begins the count anew.
 * What is always too slow is counted apart, as it always brings something.
 */
export function createPatience(
  { attemptsMax, backoffMs }: { readonly attemptsMax: number; readonly backoffMs: number },
  say: Say,
): Patience {
  let bytesBest = 0
  let inVain = 0
  let slow = 0
  let failures = 0
  return {
    gained(bytes) {
      if (bytes <= bytesBest) return
      bytesBest = bytes
      inVain = 0
    },
    filled() {
      slow = 0
    },
    async failed({ error, bytesGained, isSlow }, triesInVain, signal) {
      failures++
      inVain++
      if (isSlow) slow++
      const tries = Math.max(inVain, slow)
      if (tries >= attemptsMax || failures >= failuresMax) throw error
      say('warn', `${error.message} It is tried again (${tries} of ${attemptsMax}).`)
      const doubled = Math.min(backoffMs * 2 ** triesInVain, pauseMaxMs)
      const jittered = (0.5 + Math.random() / 2) * doubled
      const pauseMs = bytesGained >= goodBytesMin ? 0 : jittered
      await sleep(Math.max(pauseMs, (error.retryAfterS ?? 0) * 1000), signal)
    },
  }
}
