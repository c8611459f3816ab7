import type { Target, Upstream } from '#inference/upstream.ts'
import { setBounded } from '#lib/single-flight.ts'
import { Health } from './health.ts'
import { Latency } from './latency.ts'
import type { HealthSettings } from './settings.ts'
import type { Slot } from './slot.ts'

/** Models of one upstream with a state of their own; the oldest one is forgotten beyond it. */
const modelsPerUpstreamMax = 4_096
/** Seconds of `retriesPerSecond` that may be saved up. */
const savedRetriesS = 10

/** Called when an ejection begins or has ended; `model` is null for the upstream itself. */
export type OnHealthChange = (health: Health, upstream: Upstream, model: string | null) => void

/** What this process knows about an upstream. */
export class UpstreamState {
  /** Its definition in the configuration; a reload may change all but the server. */
  upstream: Upstream
  readonly health: Health
  readonly models = new Map<string, TargetState>()
  /** Concurrent requests that this process sends it at most. */
  maxInFlight: number
  inFlight = 0
  /** Requests that wait for its capacity; new ones do not overtake them. Kept by the fair queue. */
  queued = 0
  /** Of a request, from its start to its end; 0 before the first one. Kept by the fair queue. */
  meanServiceMs = 0
  /** Whether it gets no new calls: an operator has taken it out of service, or it was removed. */
  isDraining = false
  /** Whether the configuration no longer has it: what runs there may still end. */
  isRemoved = false
  /** The server that has replaced it under the same name. */
  successor: UpstreamState | null = null
  /** Slots without any response yet, the oldest first. */
  readonly waiting = new Set<Slot>()
  /** The last sign of life. */
  heardAtMs = Number.NEGATIVE_INFINITY
  /** Whether it is checked because it is silent; others are preferred meanwhile. */
  isSuspect = false
  /** Whether a check is in progress. */
  isBeingProbed = false
  probedAtMs = Number.NEGATIVE_INFINITY
  requests = 0
  failures = 0
  retriesRefused = 0
  lastFailure: { readonly kind: string; readonly atMs: number } | null = null
  readonly #settings: HealthSettings
  readonly #onHealthChange: OnHealthChange
  #savedRetries: number
  #savedAtMs: number

  constructor(
    upstream: Upstream,
    given: {
      maxInFlight: number
      settings: HealthSettings
      nowMs: number
      onHealthChange: OnHealthChange
    },
  ) {
    this.upstream = upstream
    this.maxInFlight = given.maxInFlight
    const { settings, onHealthChange } = given
    this.#onHealthChange = onHealthChange
    this.health = new Health(settings, {
      // A response to any request shows that it is reachable again.
      isProbed: () => settings.probe,
      changed: () => onHealthChange(this.health, this.upstream, null),
    })
    this.#settings = given.settings
    this.#savedRetries = given.settings.retriesPerSecond * savedRetriesS
    this.#savedAtMs = given.nowMs
  }

  of(target: Target): TargetState {
    const { model } = target
    const known = this.models.get(model)
    if (known !== undefined) return known
    const state = new TargetState(this, target, {
      settings: this.#settings,
      onHealthChange: this.#onHealthChange,
    })
    setBounded(this.models, model, state, modelsPerUpstreamMax)
    return state
  }

  /** Continues the counters of the server that it replaces, so that metrics never decrease. */
  countFrom({ requests, failures, retriesRefused, health }: UpstreamState) {
    this.requests = requests
    this.failures = failures
    this.retriesRefused = retriesRefused
    this.health.ejectionsTotal = health.ejectionsTotal
  }

  countRequest() {
    this.requests++
    this.#savedRetries += this.#settings.retryShare
  }

  /** Takes one retry of the budget; false when it is used up. */
  takeRetry(nowMs: number): boolean {
    const { retriesPerSecond } = this.#settings
    const savedMax = Math.max(1, retriesPerSecond * savedRetriesS)
    const earned = ((nowMs - this.#savedAtMs) / 1_000) * retriesPerSecond
    this.#savedAtMs = nowMs
    this.#savedRetries = Math.min(savedMax, this.#savedRetries + earned)
    if (this.#savedRetries < 1) {
      this.retriesRefused++
      return false
    }
    this.#savedRetries -= 1
    return true
  }
}

/** What this process knows about one model of an upstream. */
export class TargetState {
  readonly upstream: UpstreamState
  /** One of its targets: they differ in weight and tier. */
  readonly target: Target
  readonly health: Health
  /** To the first output of a streamed response. */
  readonly firstEvent = new Latency()
  /** To a whole response that is not streamed. */
  readonly whole = new Latency()
  heardAtMs = Number.NEGATIVE_INFINITY
  isBeingProbed = false
  /** Where equal targets take turns: the one with the lower value is next. */
  turn = 0

  constructor(
    upstream: UpstreamState,
    target: Target,
    given: { settings: HealthSettings; onHealthChange: OnHealthChange },
  ) {
    const { settings, onHealthChange } = given
    this.upstream = upstream
    this.target = target
    this.health = new Health(settings, {
      // Of errors, only a real request can tell.
      isProbed: (isSilent) => isSilent && settings.probe,
      changed: () => onHealthChange(this.health, upstream.upstream, target.model),
    })
  }
}
