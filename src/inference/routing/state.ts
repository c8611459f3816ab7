import type { Target, Upstream } from '#inference/upstream.ts'
import { Health } from './health.ts'
import { Latency } from './latency.ts'
import type { HealthSettings } from './settings.ts'
import type { Slot } from './slot.ts'

/** Models of one upstream with a state of their own; the oldest one is forgotten beyond it. */
const modelsPerUpstreamMax = 4_096
/** Seconds of `retriesPerSecond` that may be saved up. */
const savedRetriesS = 10

/** What this process knows about an upstream. */
export class UpstreamState {
  readonly upstream: Upstream
  readonly health: Health
  readonly models = new Map<string, TargetState>()
  /** Concurrent requests that this process sends it at most. */
  maxInFlight: number
  inFlight = 0
  /** Requests that wait for its capacity; new ones do not overtake them. Kept by the fair queue. */
  queued = 0
  /** Whether an operator has taken it out of service. */
  isDraining = false
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
  lastFailure: { readonly kind: string; readonly atMs: number } | null = null
  readonly #settings: HealthSettings
  #savedRetries: number
  #savedAtMs: number

  constructor(
    upstream: Upstream,
    given: { maxInFlight: number; settings: HealthSettings; nowMs: number },
  ) {
    this.upstream = upstream
    this.maxInFlight = given.maxInFlight
    // A response to any request shows that it is reachable again.
    this.health = new Health(given.settings, () => given.settings.probe)
    this.#settings = given.settings
    this.#savedRetries = given.settings.retriesPerSecond * savedRetriesS
    this.#savedAtMs = given.nowMs
  }

  of(target: Target): TargetState {
    const { model } = target
    const known = this.models.get(model)
    if (known !== undefined) return known
    if (this.models.size >= modelsPerUpstreamMax) {
      for (const oldest of this.models.keys()) {
        this.models.delete(oldest)
        break
      }
    }
    const state = new TargetState(this, target, this.#settings)
    this.models.set(model, state)
    return state
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
    if (this.#savedRetries < 1) return false
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

  constructor(upstream: UpstreamState, target: Target, settings: HealthSettings) {
    this.upstream = upstream
    this.target = target
    // Of errors, only a real request can tell.
    this.health = new Health(settings, (isSilent) => isSilent && settings.probe)
  }
}
