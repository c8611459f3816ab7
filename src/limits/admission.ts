import { estimateInput, estimateUsage } from '#inference/call-estimate.ts'
import type { Admit, Reservation } from '#inference/inference.ts'
import type { CallRecord } from '#inference/open-call.ts'
import type { RateLimit, RateLimits } from '#lib/rate-limits.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { OutputEstimate } from './estimate.ts'
import type { Leases } from './leases.ts'
import type { AppliedRate, MeterGroup, Plan, Plans } from './plans.ts'
import {
  addRateShortages,
  addSlotShortages,
  isPossible,
  refusalOf,
  type Shortage,
} from './shortages.ts'
import {
  type AdmitSpeech,
  reserveSpeech,
  type SpeechKind,
  type SpeechReservation,
  speechShortagesOf,
} from './speech.ts'

/** Whose limits apply. `model` is null for speech. */
type Caller = { readonly principal: RequestPrincipal; readonly model: string | null }

/** What one call needs of each kind of limit. */
type CallNeed = Caller & {
  readonly model: string
  readonly requests: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly isGeneration: boolean
}

type SpeechNeed = Caller & { readonly kind: SpeechKind }

/** What is checked and taken, again after each lease. */
type Work<Need extends Caller, Reserved> = {
  /** The meters of all limits, short or not. */
  metersOf(plan: Plan): MeterGroup
  shortagesOf(plan: Plan, need: Need, nowMs: number): Shortage[] | null
  reserve(plan: Plan, need: Need, nowMs: number): Reserved
}

export type AdmissionDeps = {
  readonly plans: Plans
  readonly outputs: OutputEstimate
  /** Null: this is the only process. */
  readonly leases: Leases | null
  readonly onRefused: (shortage: Shortage) => void
  readonly clockMs: () => number
  readonly now: () => Date
}

/** Rounds of asking the database: another call may take what one has leased. */
const leaseRoundsMax = 4

/**
 * Admits calls within their limits. Every limit is checked before any is taken, so a refused call uses
 * nothing. It is synchronous unless a share has to be leased first.
 */
export function createAdmission(deps: AdmissionDeps) {
  const { plans, outputs, leases, clockMs } = deps

  const refuse = (plan: Plan, shortages: readonly Shortage[]) => {
    const nowMs = clockMs()
    const rateLimits = rateLimitsOf(plan, { nowMs, at: deps.now() })
    const { decisive, error } = refusalOf(shortages, { nowMs, rateLimits })
    deps.onRefused(decisive)
    return error
  }

  const calls: Work<CallNeed, Reservation> = {
    metersOf: (plan) => plan.calls,
    shortagesOf,
    reserve(plan, need, nowMs) {
      const reservation = new LimitReservation(plan, need, deps)
      reservation.take(nowMs)
      leases?.refill(plan.calls, nowMs)
      return reservation
    },
  }
  const speech: Work<SpeechNeed, SpeechReservation> = {
    metersOf: (plan) => plan.speech,
    shortagesOf: (plan, { kind }, nowMs) => speechShortagesOf(plan, kind, nowMs),
    reserve: (plan, { kind }, nowMs) => reserveSpeech(plan, kind, nowMs, deps),
  }

  /** Reserves at once, or leases first what other processes may hold. */
  const reserveWithin = <Need extends Caller, Reserved>(
    work: Work<Need, Reserved>,
    plan: Plan,
    need: Need,
  ): Reserved | Promise<Reserved | null> => {
    const nowMs = clockMs()
    const shortages = work.shortagesOf(plan, need, nowMs)
    if (shortages === null) return work.reserve(plan, need, nowMs)
    if (leases === null || !shortages.every(isPossible)) throw refuse(plan, shortages)
    return reserveLeased(work, need, leases)
  }

  const reserveLeased = async <Need extends Caller, Reserved>(
    work: Work<Need, Reserved>,
    need: Need,
    shared: Leases,
  ): Promise<Reserved | null> => {
    for (let round = 1; ; round++) {
      // The limits may have changed, and idle meters may have been evicted.
      const plan = plans.of(need.principal, need.model)
      if (plan === null) return null
      const nowMs = clockMs()
      const shortages = work.shortagesOf(plan, need, nowMs)
      if (shortages === null) return work.reserve(plan, need, nowMs)
      if (round > leaseRoundsMax || !shared.mayLease(shortages, nowMs)) {
        throw refuse(plan, shortages)
      }
      const waited = work.metersOf(plan)
      shared.countWaiting(waited, 1)
      try {
        await shared.lease(shortages, round)
      } finally {
        shared.countWaiting(waited, -1)
      }
    }
  }

  const admit: Admit = (kind, call, requested, input) => {
    const { principal } = call.context
    const model = call.modelId ?? requested
    const plan = plans.of(principal, model)
    if (plan === null) return null
    const isGeneration = kind === 'generate'
    const isContinued = call.continues === true
    const outputTokensMax = 'sampling' in input ? input.sampling.maxOutputTokens : null
    const need: CallNeed = {
      principal,
      model,
      requests: isContinued ? 0 : 1,
      inputTokens: plan.rates.input_tokens_per_minute.length === 0 ? 0 : estimateInput(input),
      outputTokens: isGeneration ? outputNeedOf(plan, outputs.of(model, outputTokensMax)) : 0,
      isGeneration,
    }
    return isContinued ? calls.reserve(plan, need, clockMs()) : reserveWithin(calls, plan, need)
  }

  const admitSpeech: AdmitSpeech = (principal, kind) => {
    const plan = plans.of(principal, null)
    return plan === null ? null : reserveWithin(speech, plan, { principal, model: null, kind })
  }

  return {
    admit,
    admitSpeech,
    storedBytesOf: plans.storedBytesOf,
    /** The tightest limits of calls to a model, for response headers; null: none apply. */
    rateLimits(principal: RequestPrincipal, model: string): RateLimits | null {
      const plan = plans.of(principal, model)
      return plan === null ? null : rateLimitsOf(plan, { nowMs: clockMs(), at: deps.now() })
    },
  }
}

/** Null: every limit allows the call. */
function shortagesOf({ rates, slots }: Plan, need: CallNeed, nowMs: number): Shortage[] | null {
  let found = addRateShortages(null, rates.requests_per_minute, need.requests, nowMs)
  found = addRateShortages(found, rates.input_tokens_per_minute, need.inputTokens, nowMs)
  found = addRateShortages(found, rates.output_tokens_per_minute, need.outputTokens, nowMs)
  return need.isGeneration ? addSlotShortages(found, slots.concurrent_generations, nowMs) : found
}

/** An estimate above a limit would never be admitted: the real output may be shorter. */
function outputNeedOf({ rates }: Plan, estimate: number): number {
  let need = estimate
  for (const { meter } of rates.output_tokens_per_minute) need = Math.min(need, meter.limit)
  return Math.max(1, need)
}

/** What an admitted call has taken. A class, because each call within limits has one. */
class LimitReservation implements Reservation {
  readonly #plan: Plan
  readonly #need: CallNeed
  readonly #deps: AdmissionDeps

  constructor(plan: Plan, need: CallNeed, deps: AdmissionDeps) {
    this.#plan = plan
    this.#need = need
    this.#deps = deps
  }

  take(nowMs: number): void {
    const { rates, slots } = this.#plan
    const { requests, inputTokens, outputTokens, isGeneration } = this.#need
    for (const { meter } of rates.requests_per_minute) meter.take(requests, nowMs)
    for (const { meter } of rates.input_tokens_per_minute) meter.take(inputTokens, nowMs)
    for (const { meter } of rates.output_tokens_per_minute) meter.take(outputTokens, nowMs)
    if (isGeneration) for (const { meter } of slots.concurrent_generations) meter.take(nowMs)
  }

  settle(record: CallRecord): void {
    const { rates, slots } = this.#plan
    const { model, inputTokens, outputTokens, isGeneration } = this.#need
    const { leases, outputs, clockMs } = this.#deps
    const used = record.usage ?? estimateUsage(record, inputTokens)
    if (isGeneration && record.usage !== null) outputs.learn(model, used.outputTokens)
    const nowMs = clockMs()
    for (const { meter } of rates.requests_per_minute) meter.settle(0, nowMs)
    for (const { meter } of rates.input_tokens_per_minute) {
      meter.settle(used.inputTokens - inputTokens, nowMs)
    }
    for (const { meter } of rates.output_tokens_per_minute) {
      meter.settle(used.outputTokens - outputTokens, nowMs)
    }
    if (isGeneration) for (const { meter } of slots.concurrent_generations) meter.release()
    leases?.settled(this.#plan.calls)
  }
}

function rateLimitsOf({ rates }: Plan, { nowMs, at }: { nowMs: number; at: Date }): RateLimits {
  return {
    at,
    requests: tightest(rates.requests_per_minute, nowMs),
    inputTokens: tightest(rates.input_tokens_per_minute, nowMs),
    outputTokens: tightest(rates.output_tokens_per_minute, nowMs),
  }
}

/** The one with the smallest share left. */
function tightest(rates: readonly AppliedRate[], nowMs: number): RateLimit | null {
  let found: RateLimit | null = null
  for (const { meter } of rates) {
    const { limit } = meter
    const remaining = Math.floor(meter.remaining(nowMs))
    if (found !== null && found.remaining * limit <= remaining * found.limit) continue
    found = { limit, remaining, resetS: meter.resetMs(nowMs) / 1_000 }
  }
  return found
}

export type Limits = ReturnType<typeof createAdmission>
