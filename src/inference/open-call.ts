import { jitteredBackoffMs } from '#lib/backoff.ts'
import { Cancellation } from '#lib/cancellation.ts'
import { sleep } from '#lib/deadline.ts'
import { AppError, type ErrorKind, toAppError } from '#lib/errors.ts'
import type { EventBatch, Usage } from './events.ts'
import type { InferenceDeps, ModelCall, Reservation, Surface } from './inference.ts'
import { allBusy } from './routing/capacity-queue.ts'
import { targetsWithLargerWindow, withFittingTargets } from './routing/context-fit.ts'
import type { Router } from './routing/router.ts'
import type { Slot } from './routing/slot.ts'
import { nothingTried, type Tried } from './routing/usable.ts'
import type { Adapter, AdapterContext, Target } from './upstream.ts'
import { hideUpstreamIn } from './upstream-error.ts'

export type CallKind = 'generate' | 'embed' | 'rerank' | 'count-tokens'

/** The facts of one call to a model. Every admitted call is settled with exactly one. */
export type CallRecord = {
  readonly kind: CallKind
  readonly requestId: string
  readonly userId: string
  readonly keyId: string | null
  /** The model name of the request. */
  readonly model: string
  /** The name in the catalogue; null: that of the request. */
  readonly modelId: string | null
  readonly agentId: string | null
  readonly surface: Surface | null
  readonly responseId: string | null
  /** The last target that was tried; null when the call was not admitted to any. */
  target: Target | null
  outcome: 'completed' | 'failed' | 'cancelled'
  error: AppError | null
  retries: number
  usage: Usage | null
  /** Characters of output that were passed on; of a generation only. */
  outputChars: number
  /** Time in which no upstream had capacity. */
  queuedMs: number
  /** From the call to its first output; null without output. */
  firstEventMs: number | null
  durationMs: number
  /** `performance.now()` of the end. */
  endedAtMs: number
}

/** The name in the catalogue of the model that served the call, which may be a fallback. */
export function servedModelOf({ target, modelId, model }: CallRecord): string {
  return target?.modelId ?? modelId ?? model
}

export type RetryPolicy = {
  /** Further attempts after the first. */
  readonly retriesMax: number
  /** The first pause; it doubles with each retry. */
  readonly backoffMs: number
  /** A longer Retry-After is not waited for. */
  readonly retryAfterMaxMs: number
}

type AttemptOptions = {
  readonly retry: RetryPolicy
  /** The time that one attempt has for its result: of a generation, its first output. */
  readonly limitMs: number
  /** Whether the result is streamed. The first output of a whole response is its end: no limit. */
  readonly streamed: boolean
}

/** One admitted call to a model: its cancellation, its attempts and its record. */
export class OpenCall {
  readonly record: CallRecord
  /** Settled when the call is closed. */
  reservation: Reservation | null = null
  readonly #call: ModelCall
  /** Of the attempt or pause in progress; follows the signal of the request. */
  #current: Cancellation | null = null
  #abortion: { readonly reason: AppError | undefined } | null = null
  /** Of the attempt that succeeded. */
  #slot: Slot | null = null
  readonly #startedAtMs = performance.now()

  constructor(kind: CallKind, model: string, call: ModelCall) {
    const { requestId, principal, keyId } = call.context
    this.#call = call
    this.record = {
      kind,
      requestId,
      userId: principal.userId,
      keyId,
      model,
      modelId: call.modelId ?? null,
      agentId: call.agentId ?? null,
      surface: call.surface ?? null,
      responseId: call.responseId ?? null,
      target: null,
      outcome: 'cancelled',
      error: null,
      retries: 0,
      usage: null,
      outputChars: 0,
      queuedMs: 0,
      firstEventMs: null,
      durationMs: 0,
      endedAtMs: 0,
    }
  }

  /** Ends the call with this error, or as a client that disconnected. */
  abort(reason?: AppError) {
    this.#abortion ??= { reason }
    this.#current?.abort(reason)
  }

  output(batch: EventBatch) {
    this.record.firstEventMs ??= performance.now() - this.#startedAtMs
    const last = batch.at(-1)
    if (last?.type === 'finish') this.complete(last.usage)
  }

  complete(usage: Usage | null) {
    this.record.outcome = 'completed'
    this.record.usage = usage
  }

  fail(error: unknown): AppError {
    const failure = failureOf(error)
    const { record } = this
    record.error = failure
    if (record.outcome !== 'completed' && failure.kind !== 'client_closed')
      record.outcome = 'failed'
    return failure
  }

  close(): CallRecord {
    this.#current?.release()
    this.#endSlot()
    const endedAtMs = performance.now()
    this.record.endedAtMs = endedAtMs
    this.record.durationMs = endedAtMs - this.#startedAtMs
    this.reservation?.settle(this.record)
    return this.record
  }

  /**
   * Calls targets as the router chooses them until one attempt succeeds. Throws the last failure as an
   * `AppError`. The context of the successful attempt follows this call until it is closed.
   */
  async attempt<T>(
    { adapters, transport, limits, router }: InferenceDeps,
    options: AttemptOptions,
    run: (adapter: Adapter, context: AdapterContext) => Promise<T>,
  ): Promise<T> {
    let call = withFittingTargets(this.#call)
    const { context: requestContext } = call
    const { limitMs } = options
    let tried = nothingTried
    for (let retries = 0; ; retries++) {
      const signal = this.#follow()
      const slot = router.take(call, tried) ?? (await this.#wait(router, tried, signal))
      const { upstream, model } = slot.target
      this.record.target = slot.target
      this.record.retries = retries
      const streamed = options.streamed || !upstream.quirks.unstreamed
      slot.form = formOf(this.record.kind, streamed)
      slot.cancellation = signal
      const expire = () => signal.abort(firstEventTimeout(limitMs))
      const timer = streamed ? setTimeout(expire, limitMs) : undefined
      let failure: AppError
      try {
        const context = { upstream, model, transport, limits, signal, requestContext, streamed }
        const result = await run(adapters[upstream.kind], context)
        slot.answered()
        this.#slot = slot
        return result
      } catch (error) {
        failure = failureOf(hideUpstreamIn(error, upstream))
        slot.end(failure)
      } finally {
        clearTimeout(timer)
      }
      const isPermanent = permanentKinds.has(failure.kind)
      if (failure.kind === 'context_length_exceeded') {
        call = { ...call, targets: targetsWithLargerWindow(call.targets, slot.target) }
      }
      tried = { targets: [...tried.targets, slot.target], isPermanent }
      const isElsewhere = router.hasOther(call, tried)
      const untriedUpstream = isElsewhere || (isPermanent && hasUntried(call, tried))
      const pauseMs = pauseBeforeRetryMs(failure, retries, { ...options.retry, untriedUpstream })
      if (pauseMs === null || this.#isAborted()) throw failure
      if (!router.mayRetry(slot, failure, { isElsewhere })) throw failure
      await sleep(pauseMs, this.#follow())
    }
  }

  /** Waits for capacity; a token count is not worth it. */
  async #wait(router: Router, tried: Tried, signal: Cancellation): Promise<Slot> {
    const { record } = this
    if (record.kind === 'count-tokens') throw allBusy()
    const startedAtMs = performance.now()
    try {
      return await router.wait(this.#call, tried, signal)
    } finally {
      record.queuedMs += performance.now() - startedAtMs
    }
  }

  #endSlot() {
    if (this.#slot === null) return
    this.#slot.usage = this.record.usage
    this.#slot.end(this.record.error)
  }

  #isAborted(): boolean {
    return this.#abortion !== null || this.#call.context.signal.aborted
  }

  /** The cancellation of the next attempt or pause; that of the last one is released. */
  #follow(): Cancellation {
    this.#current?.release()
    this.#current = new Cancellation(this.#call.context.signal)
    if (this.#abortion !== null) this.#current.abort(this.#abortion.reason)
    return this.#current
  }
}

function formOf(kind: CallKind, streamed: boolean): Slot['form'] {
  if (kind === 'count-tokens') return 'count'
  return kind === 'generate' && streamed ? 'first-event' : 'whole'
}

function hasUntried({ targets }: ModelCall, tried: Tried): boolean {
  return targets.some((target) => !tried.targets.includes(target))
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
  'context_length_exceeded',
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
  const jitteredMs = jitteredBackoffMs(retries + 1, { firstMs: policy.backoffMs })
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
