import { Cancellation } from '#lib/cancellation.ts'
import { sleep } from '#lib/deadline.ts'
import type { AppError } from '#lib/errors.ts'
import type { Span } from '#lib/trace.ts'
import { failureOf, runAttempt } from './attempt.ts'
import { endCallSpan, OutputContent, startAttemptSpan, startCallSpan } from './call-spans.ts'
import { type EventBatch, reportedUsage, type Usage } from './events.ts'
import type { InferenceDeps, ModelCall, Reservation, Surface } from './inference.ts'
import { pauseBeforeRetryMs, permanentKinds, type RetryPolicy } from './retry.ts'
import { allBusy } from './routing/capacity-queue.ts'
import { targetsWithLargerWindow, withFittingTargets } from './routing/context-fit.ts'
import { mayHedge, type Running, raceWithHedge } from './routing/hedge.ts'
import type { Router } from './routing/router.ts'
import type { Slot } from './routing/slot.ts'
import { nothingTried, type Tried } from './routing/usable.ts'
import type { Adapter, AdapterContext, Target } from './upstream.ts'

export type CallKind = 'generate' | 'embed' | 'rerank' | 'speak' | 'count-tokens'

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
  /** Whether a second attempt ran beside the first one. Its usage is not known. */
  hedged: boolean
  usage: Usage | null
  /** Characters of output that were passed on; of a generation only. */
  outputChars: number
  /** Of spoken audio, where its format tells. */
  audioMs?: number
  /** Time in which no upstream had capacity. */
  queuedMs: number
  /** From the call to its first output; null without output. */
  firstEventMs: number | null
  durationMs: number
  /** `performance.now()` of the end. */
  endedAtMs: number
  /** Whether the log line of its request contains it. */
  isReported: boolean
}

/** The name in the catalogue of the model that served the call, which may be a fallback. */
export function servedModelOf({ target, modelId, model }: CallRecord): string {
  return target?.modelId ?? modelId ?? model
}

type AttemptOptions = {
  readonly retry: RetryPolicy
  /** The time that one attempt has for its result: of a generation, its first output. */
  readonly limitMs: number
  /** Whether the result is streamed. The first output of a whole response is its end: no limit. */
  readonly streamed: boolean
}

type Run<T> = (adapter: Adapter, context: AdapterContext) => Promise<T>

/** One admitted call to a model: its cancellation, its attempts and its record. */
export class OpenCall {
  readonly record: CallRecord
  /** Settled when the call is closed. */
  reservation: Reservation | null = null
  readonly #call: ModelCall
  /** Of the attempt or pause in progress; follows the signal of the request. */
  #current: Cancellation | null = null
  #abortion: { readonly reason: AppError | undefined } | null = null
  /** Of a second attempt beside it. */
  #hedging: Cancellation | null = null
  /** Of the attempt that succeeded. */
  #slot: Slot | null = null
  readonly startedAtMs = performance.now()
  #hasBegun = false
  /** Null where the trace is not sampled. */
  #span: Span | null = null
  #output: OutputContent | null = null

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
      hedged: false,
      usage: null,
      outputChars: 0,
      queuedMs: 0,
      firstEventMs: null,
      durationMs: 0,
      endedAtMs: 0,
      isReported: false,
    }
  }

  /** Ends the call with this error, or as a client that disconnected. */
  abort(reason?: AppError) {
    this.#abortion ??= { reason }
    this.#current?.abort(reason)
    this.#hedging?.abort(reason)
  }

  /** The first output has arrived. Returns whether its span contains the output: `trace` gets all of it. */
  begin(): boolean {
    this.record.firstEventMs = performance.now() - this.startedAtMs
    this.#call.context.exchange?.outputBegan(this.record.queuedMs)
    return this.#output !== null
  }

  trace(batch: EventBatch) {
    this.#output?.add(batch)
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

  /** Fails because of what the model wrote in a batch, for which the upstream is not blamed. */
  reject(error: AppError, batch: EventBatch): AppError {
    this.record.usage = reportedUsage(batch)
    this.#endSlot()
    return this.fail(error)
  }

  close(): CallRecord {
    this.#current?.release()
    this.#hedging?.release()
    this.#endSlot()
    const endedAtMs = performance.now()
    this.record.endedAtMs = endedAtMs
    this.record.durationMs = endedAtMs - this.startedAtMs
    this.reservation?.settle(this.record)
    if (this.#span !== null) endCallSpan(this.#span, this.record, this.#output)
    if (this.#hasBegun) {
      this.record.isReported = this.#call.context.exchange?.callEnded(this.record) ?? false
    }
    return this.record
  }

  /**
   * Calls targets as the router chooses them until one attempt succeeds. Throws the last failure as an
   * `AppError`. The context of the successful attempt follows this call until it is closed.
   */
  async attempt<T>(deps: InferenceDeps, options: AttemptOptions, run: Run<T>): Promise<T> {
    const { router } = deps
    this.#hasBegun = true
    this.#call.context.exchange?.workStarted()
    this.#span = startCallSpan(this.record, this.#call, this.startedAtMs)
    if (this.#span !== null) this.#output = new OutputContent(this.#span)
    let call = withFittingTargets(this.#call)
    let tried = nothingTried
    for (let retries = 0; ; retries++) {
      const signal = this.#follow()
      const slot = router.take(call, tried) ?? (await this.#wait(router, { call, tried, signal }))
      this.record.retries = retries
      let failure: AppError
      try {
        const result = this.#begin(deps, { slot, signal, options }, run)
        const { hedgeMs } = slot.target
        if (hedgeMs === undefined) {
          const value = await result
          this.#slot = slot
          return value
        }
        const first = { slot, signal, result }
        return await this.#hedge(deps, { first, hedgeMs, call, tried, options }, run)
      } catch (error) {
        failure = failureOf(error)
      }
      const isPermanent = permanentKinds.has(failure.kind)
      if (failure.kind === 'context_length_exceeded') {
        call = { ...call, targets: targetsWithLargerWindow(call.targets, slot.target) }
      }
      const last = this.record.target
      const failed = last === slot.target || last === null ? [slot.target] : [slot.target, last]
      tried = { targets: [...tried.targets, ...failed], isPermanent }
      const isElsewhere = router.hasOther(call, tried)
      const untriedUpstream = isElsewhere || (isPermanent && hasUntried(call, tried))
      const pauseMs = pauseBeforeRetryMs(failure, retries, { ...options.retry, untriedUpstream })
      const isAborted = this.#abortion !== null || this.#call.context.signal.aborted
      if (pauseMs === null || isAborted) throw failure
      if (!router.mayRetry(slot, failure, { isElsewhere })) throw failure
      await sleep(pauseMs, this.#follow())
    }
  }

  #begin<T>(
    deps: InferenceDeps,
    { slot, signal, options }: { slot: Slot; signal: Cancellation; options: AttemptOptions },
    run: Run<T>,
  ): Promise<T> {
    const { limitMs } = options
    const streamed = options.streamed || !slot.state.upstream.upstream.quirks.unstreamed
    slot.begin(this.record.kind, streamed)
    this.record.target = slot.target
    const requestContext = this.#call.context
    if (this.#span !== null) slot.span = startAttemptSpan(this.#span, slot, this.record.retries)
    return runAttempt(deps, { slot, signal, requestContext, limitMs, streamed }, run)
  }

  /** The first attempt, and a second one elsewhere if it gives no output for too long. */
  async #hedge<T>(
    deps: InferenceDeps,
    given: {
      first: Running<T>
      hedgeMs: number
      call: ModelCall
      tried: Tried
      options: AttemptOptions
    },
    run: Run<T>,
  ): Promise<T> {
    const { first, hedgeMs, call, tried, options } = given
    const start = (): Running<T> | null => {
      if (!options.streamed || call.request === undefined || !mayHedge(call.request)) return null
      const slot = deps.router.takeHedge(call, tried, first.slot)
      if (slot === null) return null
      this.record.hedged = true
      const signal = new Cancellation(call.context.signal)
      this.#hedging?.release()
      this.#hedging = signal
      return { slot, signal, result: this.#begin(deps, { slot, signal, options }, run) }
    }
    const { winner, value } = await raceWithHedge(first, hedgeMs, start)
    if (winner !== first) {
      this.#current?.release()
      this.#current = winner.signal
    }
    this.#slot = winner.slot
    this.record.target = winner.slot.target
    return value
  }

  /** Waits for capacity; a token count is not worth it. */
  async #wait(
    router: Router,
    { call, tried, signal }: { call: ModelCall; tried: Tried; signal: Cancellation },
  ): Promise<Slot> {
    const { record } = this
    if (record.kind === 'count-tokens') throw allBusy()
    const startedAtMs = performance.now()
    try {
      return await router.wait(call, tried, signal)
    } finally {
      record.queuedMs += performance.now() - startedAtMs
    }
  }

  #endSlot() {
    if (this.#slot === null) return
    this.#slot.usage = this.record.usage
    this.#slot.end(this.record.error)
  }

  /** The cancellation of the next attempt or pause; that of the last one is released. */
  #follow(): Cancellation {
    this.#current?.release()
    const { context } = this.#call
    this.#current = context.followClient?.() ?? new Cancellation(context.signal)
    if (this.#abortion !== null) this.#current.abort(this.#abortion.reason)
    return this.#current
  }
}

function hasUntried({ targets }: ModelCall, tried: Tried): boolean {
  return targets.some((target) => !tried.targets.includes(target))
}
