import { jitteredBackoffMs } from '#lib/backoff.ts'
import type { AppError, ErrorKind } from '#lib/errors.ts'

export type RetryPolicy = {
  /** Further attempts after the first. */
  readonly retriesMax: number
  /** The first pause; it doubles with each retry. */
  readonly backoffMs: number
  /** A longer Retry-After is not waited for. */
  readonly retryAfterMaxMs: number
}

/** Transient failures: another attempt may succeed at any upstream. */
const transientKinds: ReadonlySet<ErrorKind> = new Set([
  'rate_limit_exceeded',
  'upstream_error',
  'upstream_unreachable',
  'upstream_truncated',
  'upstream_overloaded',
  'upstream_connect_timeout',
])

/** Permanent failures of one upstream: only another upstream may succeed. */
export const permanentKinds: ReadonlySet<ErrorKind> = new Set([
  'upstream_refused',
  'insufficient_quota',
  'upstream_invalid_answer',
  'upstream_first_event_timeout',
  'context_length_exceeded',
])

/**
 * The pause before the next attempt; null when none makes sense. `retries` counts from 0. An upstream
 * that was not tried yet is called at once; the same one after an exponential pause with jitter, which
 * honours Retry-After.
 */
export function pauseBeforeRetryMs(
  error: AppError,
  retries: number,
  policy: RetryPolicy & { untriedUpstream: boolean },
): number | null {
  if (retries >= policy.retriesMax) return null
  const isTransient = transientKinds.has(error.kind)
  if (policy.untriedUpstream) return isTransient || permanentKinds.has(error.kind) ? 0 : null
  if (!isTransient) return null
  const jitteredMs = jitteredBackoffMs(retries + 1, { firstMs: policy.backoffMs })
  const retryAfterMs = (error.retryAfterS ?? 0) * 1000
  return retryAfterMs > policy.retryAfterMaxMs ? null : Math.max(retryAfterMs, jitteredMs)
}
