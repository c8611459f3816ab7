import { followSignal, sleep } from '#lib/deadline.ts'
import { AppError, type ErrorKind, toAppError } from '#lib/errors.ts'
import type { RequestContext } from '#lib/request-context.ts'
import type { OpenCallRecord } from './call-record.ts'
import type { Transport } from './transport.ts'
import type { Adapter, AdapterContext, AdapterLimits, Target } from './upstream.ts'
import { hideUpstreamIn } from './upstream-error.ts'
import type { Adapters } from './upstreams/index.ts'

export type AttemptDeps = {
  readonly adapters: Adapters
  readonly transport: Transport
  readonly limits: AdapterLimits
}

export type RetryPolicy = {
  /** Further attempts after the first. */
  readonly retriesMax: number
  /** The first pause; it doubles with each retry. */
  readonly backoffMs: number
  /** A longer Retry-After is not waited for. */
  readonly retryAfterMaxMs: number
}

export type AttemptedCall = {
  readonly context: RequestContext
  /** In order of preference, at least one. */
  readonly targets: readonly Target[]
  readonly signal: AbortSignal
  readonly record: OpenCallRecord
  readonly retry: RetryPolicy
  /** Asked after each failure. */
  readonly mayRetry: () => boolean
  /** The time that one attempt has for its result: of a generation, its first output. */
  readonly limitMs: number
}

/** One call of an adapter. */
export type Attempt = {
  readonly adapter: Adapter
  readonly context: AdapterContext
  /** Stops following the signal of the call. Called by `attemptTargets` after a failure. */
  release(): void
}

/**
 * Calls the targets in order, and then again, until one attempt succeeds. Throws the last failure as
 * an `AppError`. After a success the caller releases the attempt.
 */
export async function attemptTargets<T>(
  deps: AttemptDeps,
  call: AttemptedCall,
  run: (attempt: Attempt) => Promise<T>,
): Promise<T> {
  const { targets, signal, limitMs } = call
  const { transport, limits } = deps
  for (let retries = 0; ; retries++) {
    const target = targets[retries % targets.length]
    if (target === undefined) throw new AppError('internal_error', 'The model has no upstream.')
    call.record.startAttempt(target, retries)
    const { upstream, model } = target
    const { controller, release } = followSignal(signal)
    const timer = setTimeout(() => controller.abort(firstEventTimeout(limitMs)), limitMs)
    let failure: AppError
    try {
      return await run({
        adapter: deps.adapters[upstream.kind],
        context: {
          upstream,
          model,
          transport,
          limits,
          signal: controller.signal,
          requestContext: call.context,
        },
        release,
      })
    } catch (error) {
      release()
      failure = failureOf(hideUpstreamIn(error, upstream))
    } finally {
      clearTimeout(timer)
    }
    const untriedUpstream = retries + 1 < targets.length
    const pauseMs = call.mayRetry()
      ? pauseBeforeRetryMs(failure, retries, { ...call.retry, untriedUpstream })
      : null
    if (pauseMs === null || signal.aborted) throw failure
    await sleep(pauseMs, signal)
  }
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
const permanentKinds: ReadonlySet<ErrorKind> = new Set([
  'upstream_refused',
  'insufficient_quota',
  'upstream_invalid_answer',
  'upstream_first_event_timeout',
])

/**
 * The pause before the next attempt; null when none makes sense. `retries` counts from 0. An upstream
 * that was not tried yet is called at once; the same one after an exponential pause with jitter, which
 * honours Retry-After.
 */
function pauseBeforeRetryMs(
  error: AppError,
  retries: number,
  policy: RetryPolicy & { untriedUpstream: boolean },
): number | null {
  if (retries >= policy.retriesMax) return null
  const isTransient = transientKinds.has(error.kind)
  if (policy.untriedUpstream) return isTransient || permanentKinds.has(error.kind) ? 0 : null
  if (!isTransient) return null
  const jitteredMs = (0.5 + Math.random() / 2) * policy.backoffMs * 2 ** retries
  const retryAfterMs = (error.retryAfterS ?? 0) * 1000
  return retryAfterMs > policy.retryAfterMaxMs ? null : Math.max(retryAfterMs, jitteredMs)
}

/** An abort without a reason of ours comes from a client that disconnected. */
export function failureOf(error: unknown): AppError {
  if (error instanceof DOMException && error.name === 'AbortError') {
    return new AppError('client_closed', 'The client disconnected.', { cause: error })
  }
  return toAppError(error)
}

function firstEventTimeout(limitMs: number): AppError {
  return new AppError(
    'upstream_first_event_timeout',
    `The upstream sent no output within ${limitMs / 1000} s.`,
  )
}
