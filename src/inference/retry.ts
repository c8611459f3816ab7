import type { AppError, ErrorKind } from '#lib/errors.ts'

export type RetryPolicy = {
  /** Further tries after the first. */
  retriesMax: number
  /** The first pause; it doubles with each retry. */
  backoffMs: number
  /** The longest Retry-After that is waited for. */
  retryAfterMaxMs: number
}

/** Failures that pass: another try may succeed, here or elsewhere. */
const passing: ReadonlySet<ErrorKind> = new Set([
  'rate_limit_exceeded',
  'upstream_error',
  'upstream_unreachable',
  'upstream_truncated',
  'upstream_overloaded',
  'upstream_connect_timeout',
])

/** Failures that stay with an upstream: only another one may succeed. */
const staying: ReadonlySet<ErrorKind> = new Set([
  'upstream_refused',
  'insufficient_quota',
  'upstream_invalid_answer',
  'upstream_first_event_timeout',
])

/**
 * How long to wait before the next try, or null where none makes sense. `retry` counts from 0.
 * Another upstream that was not asked yet is asked at once; the same one after a pause that grows,
 * is jittered, and honours its Retry-After.
 */
export function pauseBeforeRetryMs(
  error: AppError,
  retry: number,
  options: RetryPolicy & { untriedUpstream: boolean },
): number | null {
  if (retry >= options.retriesMax) return null
  if (options.untriedUpstream) return passing.has(error.kind) || staying.has(error.kind) ? 0 : null
  if (!passing.has(error.kind)) return null
  const jittered = (0.5 + Math.random() / 2) * options.backoffMs * 2 ** retry
  const askedMs = (error.retryAfterS ?? 0) * 1000
  return askedMs > options.retryAfterMaxMs ? null : Math.max(askedMs, jittered)
}
