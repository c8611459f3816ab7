import type { Usage } from '#inference/events.ts'
import type { ModelCall } from '#inference/inference.ts'
import type { CallKind } from '#inference/open-call.ts'
import type { Target } from '#inference/upstream.ts'
import type { Cancellation } from '#lib/cancellation.ts'
import type { AppError } from '#lib/errors.ts'
import type { Span } from '#lib/trace.ts'
import { blameOf, isSilence } from './outcome.ts'
import type { TargetState } from './state.ts'
import type { Tried } from './usable.ts'

export type SlotOwner = {
  nowMs(): number
  slotEnded(slot: Slot): void
  readonly onAttemptEnded?: OnAttemptEnded | undefined
}

/** Called once for each attempt. */
export type OnAttemptEnded = (slot: Slot, failure: AppError | null, nowMs: number) => void

/**
 * One attempt at a target, and its place among the requests in flight there. `end` must be called once;
 * further calls do nothing.
 */
export class Slot {
  readonly target: Target
  readonly state: TargetState
  readonly call: ModelCall
  /** The earlier attempts of the call. */
  readonly tried: Tried
  readonly startedAtMs: number
  kind: CallKind = 'generate'
  /** What the first output of this attempt is. The time of a token count says nothing. */
  form: 'first-event' | 'whole' | 'count' = 'first-event'
  /** Ends the attempt when its upstream is found to be silent. Set by the caller. */
  cancellation: Cancellation | null = null
  /** Of a sampled trace. Set by the caller; ended here. */
  span: Span | null = null
  /** Of the call, once it has ended. */
  usage: Usage | null = null
  /** Whether it shows if an ejected target works again. */
  readonly isTrial: boolean
  readonly #owner: SlotOwner
  #phase: 'waiting' | 'answered' | 'ended' = 'waiting'

  constructor(given: {
    target: Target
    state: TargetState
    call: ModelCall
    tried: Tried
    isTrial: boolean
    owner: SlotOwner
  }) {
    const { target, state, call, tried, isTrial, owner } = given
    this.target = target
    this.state = state
    this.call = call
    this.tried = tried
    this.isTrial = isTrial
    this.#owner = owner
    this.startedAtMs = owner.nowMs()
    const { upstream } = state
    upstream.inFlight++
    upstream.countRequest()
    upstream.waiting.add(this)
    if (!isTrial) return
    state.health.beginTrial()
    upstream.health.beginTrial()
  }

  begin(kind: CallKind, streamed: boolean) {
    this.kind = kind
    if (kind === 'count-tokens') this.form = 'count'
    else this.form = kind === 'generate' && streamed ? 'first-event' : 'whole'
  }

  /** The first output has arrived. */
  answered() {
    if (this.#phase !== 'waiting') return
    this.#phase = 'answered'
    const nowMs = this.#owner.nowMs()
    const { state, startedAtMs } = this
    state.upstream.waiting.delete(this)
    if (this.form === 'first-event') state.firstEvent.add(nowMs - startedAtMs)
    else if (this.form === 'whole') state.whole.add(nowMs - startedAtMs)
    this.#heard(nowMs)
    // It may still break off.
    state.health.admit(nowMs)
  }

  /** Another attempt of the call gave output first: this one would have taken longer. */
  lose() {
    this.span?.set({ 'sluice.hedge.lost': true })
    if (this.#phase === 'waiting' && this.form === 'first-event') {
      this.state.firstEvent.add(this.#owner.nowMs() - this.startedAtMs)
    }
    this.end(null)
  }

  /** The attempt has ended, with this failure. */
  end(failure: AppError | null) {
    if (this.#phase === 'ended') return
    const { state } = this
    const { upstream } = state
    if (this.#phase === 'waiting') upstream.waiting.delete(this)
    const blame = failure === null ? 'nobody' : blameOf(failure)
    if (this.#phase === 'answered' && blame === 'nobody') state.health.failures = 0
    this.#phase = 'ended'
    upstream.inFlight--
    // The time limit of a count is short.
    if (failure !== null && !(this.form === 'count' && isSilence(failure))) this.#fail(failure)
    if (this.isTrial) {
      state.health.endTrial()
      upstream.health.endTrial()
    }
    if (this.span !== null) endSpan(this.span, failure)
    const owner = this.#owner
    owner.slotEnded(this)
    owner.onAttemptEnded?.(this, failure, owner.nowMs())
  }

  #heard(nowMs: number) {
    const { state } = this
    state.heardAtMs = nowMs
    state.upstream.heardAtMs = nowMs
    state.upstream.health.succeed(nowMs)
  }

  #fail(failure: AppError) {
    const { state } = this
    const { upstream } = state
    const nowMs = this.#owner.nowMs()
    const blame = blameOf(failure)
    if (blame === 'request') {
      this.#heard(nowMs)
      state.health.succeed(nowMs)
    }
    if (blame === 'request' || blame === 'nobody') return
    upstream.failures++
    upstream.lastFailure = { kind: failure.kind, atMs: nowMs }
    // Its requests were ended because of it.
    if (isSilence(failure) && upstream.health.isEjected && !this.isTrial) return
    const { health } = blame === 'upstream' ? upstream : state
    // One caller has paid with its time; that is enough.
    if (isSilence(failure)) health.eject(nowMs, { isSilent: true })
    else health.fail(nowMs)
    if (blame === 'upstream' || isSilence(failure)) return
    upstream.heardAtMs = nowMs
    upstream.health.succeed(nowMs)
    if (failure.retryAfterS !== undefined) health.pause(nowMs, failure.retryAfterS * 1_000)
  }
}

function endSpan(span: Span, failure: AppError | null): void {
  if (failure !== null) span.fail(failure.kind, failure.message)
  span.end()
}
