import type { ModelCall } from '#inference/inference.ts'
import type { Target, Upstream } from '#inference/upstream.ts'
import type { CancelSignal } from '#lib/cancellation.ts'
import { AppError } from '#lib/errors.ts'
import { type Candidate, chooseByLoad, chooseForSession } from './balance.ts'
import { type CapacityQueue, refusingQueue } from './capacity-queue.ts'
import { checkUpstream, type Probes } from './checks.ts'
import { isSilence, wasNotSent } from './outcome.ts'
import { defaultHealthSettings, type HealthSettings } from './settings.ts'
import { type OnAttemptEnded, Slot, type SlotOwner } from './slot.ts'
import type { OnHealthChange, TargetState, UpstreamState } from './state.ts'
import { createUpstreamStates } from './upstream-states.ts'
import {
  hasCapacity,
  isOnTrial,
  isSameTier,
  isWorking,
  nothingTried,
  type Tried,
  usableOf,
} from './usable.ts'

const drainedRetryAfterS = 5

export type Router = ReturnType<typeof createRouter>

export type RouterOptions = {
  readonly nowMs?: () => number
  /** From 0 up to but not 1. */
  readonly random?: () => number
  readonly settings?: HealthSettings
  /** The most concurrent requests of an upstream. */
  readonly maxInFlightOf?: (upstream: string) => number
  readonly queue?: CapacityQueue
  /** Without them, ejections end by time alone. */
  readonly probes?: Probes
  readonly onHealthChange?: OnHealthChange
  readonly onAttemptEnded?: OnAttemptEnded
}

/** What a changed configuration changes. */
export type RouterConfiguration = {
  readonly upstreams: readonly Upstream[]
  readonly settings: HealthSettings
  readonly maxInFlightOf: (upstream: string) => number
  readonly probes: Probes
}

/**
 * Chooses the target of each attempt by what this process has seen of its upstreams: their health,
 * their load and their latency.
 */
export function createRouter(options: RouterOptions = {}) {
  const {
    nowMs = () => performance.now(),
    random = Math.random,
    onHealthChange = () => {},
    maxInFlightOf = () => Number.POSITIVE_INFINITY,
    queue = refusingQueue,
  } = options
  const given = options.settings ?? defaultHealthSettings
  let probes = options.probes ?? null
  /** Shared with every state; only `configure` changes it. */
  const settings = { ...given, probe: given.probe && probes !== null }
  const { onAttemptEnded } = options
  const owner: SlotOwner = { nowMs, slotEnded: queue.ended, onAttemptEnded }
  const states = createUpstreamStates({ settings, nowMs, maxInFlightOf, onHealthChange })
  const upstreamState = states.of
  const stateOf = (target: Target): TargetState => upstreamState(target.upstream).of(target)

  /** The target of the next attempt; null without capacity. */
  const choose = (call: ModelCall, tried: Tried, isQueued: boolean): Candidate | null => {
    const [only, second] = call.targets
    if (only === undefined) throw new AppError('internal_error', 'The model has no upstream.')
    if (second === undefined) {
      const state = stateOf(only)
      if (isOutOfService(state, call)) throw allDraining()
      return hasCapacity(state, isQueued) ? { target: only, state } : null
    }
    const now = nowMs()
    const usable = usableOf(call.targets, tried, { stateOf, now, random })
    if (usable.length === 0) return continued(call) ?? fail(allDraining())
    const free = usable.filter(({ state }) => hasCapacity(state, isQueued))
    const [first] = free
    if (first === undefined) return null
    const tier = free.filter(({ target }) => isSameTier(target, first.target))
    const trial = tier.find(({ state }) => isOnTrial(state, now))
    if (trial !== undefined || tier.length === 1) return trial ?? first
    const session = sessionOf(call)
    return session === null ? chooseByLoad(tier, random) : chooseForSession(tier, session)
  }
  /** Further calls of a running response may end at an upstream that was removed meanwhile. */
  const continued = (call: ModelCall): Candidate | undefined =>
    call.targets
      .map((target) => ({ target, state: stateOf(target) }))
      .find(({ state }) => !isOutOfService(state, call))
  const take = (call: ModelCall, tried: Tried, isQueued: boolean): Slot | null => {
    const chosen = choose(call, tried, isQueued)
    if (chosen === null) return null
    const { target, state } = chosen
    const isTrial = isOnTrial(state, nowMs())
    return new Slot({ target, state, call, tried, isTrial, owner })
  }

  const hasOther = (call: ModelCall, { targets: tried }: Tried): boolean =>
    call.targets.some((target) => !tried.includes(target) && isWorking(stateOf(target), nowMs()))
  const checkDeps = () => ({
    settings,
    nowMs,
    probes: settings.probe ? probes : null,
    hasOther: ({ call, tried, target }: Slot) =>
      hasOther(call, { ...tried, targets: [...tried.targets, target] }),
    onReturn: (upstream: UpstreamState) => queue.freed(upstream),
  })

  return {
    stateOf,
    upstreamState,
    /** Of the configuration, and removed ones where requests still run. */
    upstreams: (): Iterable<UpstreamState> => states.all(),

    /**
     * The slot of the next attempt of a call; null when no target that may be tried has capacity.
     * Throws when all are draining.
     */
    take: (call: ModelCall, tried: Tried): Slot | null => take(call, tried, false),

    /**
     * A slot for a second attempt beside the first one: at another target of the same model that works
     * and has capacity, within the retry budget.
     */
    takeHedge(call: ModelCall, { targets: tried }: Tried, { target, state }: Slot): Slot | null {
      const others = call.targets.filter(
        (other) =>
          other !== target &&
          other.isFallback === target.isFallback &&
          !tried.includes(other) &&
          isWorking(stateOf(other), nowMs()) &&
          hasCapacity(stateOf(other), false),
      )
      if (others.length === 0 || !state.upstream.takeRetry(nowMs())) return null
      return take({ ...call, targets: others }, nothingTried, false)
    },

    /** Waits for capacity. */
    wait: (call: ModelCall, tried: Tried, signal: CancelSignal): Promise<Slot> =>
      queue.wait({
        call,
        upstreams: [...new Set(call.targets.map((target) => stateOf(target).upstream))],
        isRetry: tried.targets.length > 0,
        take: () => take(call, tried, true),
        signal,
      }),

    /** Whether a call has a target left that was not tried and works, as far as is known. */
    hasOther,

    /** Takes a retry from the budget of the upstream that failed; false when it is used up. */
    mayRetry(failed: Slot, failure: AppError, { isElsewhere }: { isElsewhere: boolean }): boolean {
      // Nothing was generated, and the ejection that follows bounds the number of such retries.
      if (wasNotSent(failure) || (isElsewhere && isSilence(failure))) return true
      return failed.state.upstream.takeRetry(nowMs())
    },

    nowMs,

    /** Takes these upstreams out of service, and all others into it. Returns those that changed. */
    drain(names: ReadonlySet<string>): readonly string[] {
      const changed = states.drain(names)
      for (const upstream of changed) queue.freed(upstream)
      return changed.map(({ upstream }) => upstream.name)
    },

    /** Moves requests away from silent upstreams, and checks ejected ones. For a periodic timer. */
    check() {
      const deps = checkDeps()
      for (const upstream of states.running()) checkUpstream(upstream, deps)
    },

    /**
     * Changes to another configuration. Requests in progress continue as they began; what was learned
     * about a server that stays is kept, and removed upstreams get no new calls.
     */
    configure({ upstreams, settings: next, maxInFlightOf, ...changed }: RouterConfiguration) {
      probes = changed.probes
      Object.assign(settings, next)
      for (const state of states.configure(upstreams, maxInFlightOf)) queue.freed(state)
    },
  }
}

function isOutOfService({ upstream }: TargetState, call: ModelCall): boolean {
  return upstream.isDraining && !(upstream.isRemoved && call.continues === true)
}

function fail(error: AppError): never {
  throw error
}

function allDraining(): AppError {
  return new AppError('service_unavailable', 'The upstreams of the model are out of service.', {
    retryAfterS: drainedRetryAfterS,
  })
}

/** Requests of a user with one cache key meet the same prompt cache. */
function sessionOf({ request, context }: ModelCall): string | null {
  const key = request?.promptCacheKey ?? null
  return key === null ? null : `${context.principal.userId}\0${key}`
}
