import type { Target } from '#inference/upstream.ts'
import type { Candidate } from './balance.ts'
import type { TargetState } from './state.ts'

/** The earlier attempts of a call. */
export type Tried = {
  readonly targets: readonly Target[]
  /** Whether they failed for good, so that only others make sense. */
  readonly isPermanent: boolean
}

export const nothingTried: Tried = { targets: [], isPermanent: false }

type Situation = {
  readonly stateOf: (target: Target) => TargetState
  readonly now: number
  readonly random: () => number
}

/**
 * The targets that the next attempt may use, in order of preference; none only when all are draining.
 * Ejected ones are used when no other is left.
 */
export function usableOf(
  targets: readonly Target[],
  tried: Tried,
  { stateOf, now, random }: Situation,
): readonly Candidate[] {
  const inService = targets
    .map((target) => ({ target, state: stateOf(target) }))
    .filter(({ state }) => !state.upstream.isDraining)
  const fresh = inService.filter(({ target }) => !tried.targets.includes(target))
  const working = fresh.filter(({ state }) => availabilityOf(state, now) !== 'unavailable')
  if (working.length > 0) return preferred(working, { now, random })
  const again = tried.isPermanent && fresh.length > 0 ? fresh : inService
  const open = again.filter(({ state }) => availabilityOf(state, now) !== 'unavailable')
  if (open.length > 0) return withoutFallbacks(leastTried(open, tried))
  return leastTried(again, tried).toSorted(byCostOfFailure).slice(0, 1)
}

/** Of those that work: the model itself, then others that stand in for it, then silent upstreams. */
function preferred(
  working: readonly Candidate[],
  { now, random }: Pick<Situation, 'now' | 'random'>,
): readonly Candidate[] {
  const heard = withoutFallbacks(working.filter(({ state }) => !state.upstream.isSuspect))
  if (heard.length === 0) return withoutFallbacks(working)
  const ready = heard.filter(({ state }) => getsShare(state, now, random))
  return ready.length === 0 ? heard : ready
}

function withoutFallbacks(candidates: readonly Candidate[]): readonly Candidate[] {
  const own = candidates.filter(({ target }) => target.isFallback !== true)
  return own.length === 0 ? candidates : own
}

function leastTried(candidates: readonly Candidate[], tried: Tried): readonly Candidate[] {
  const triesOf = ({ target }: Candidate) => tried.targets.filter((each) => each === target).length
  const least = Math.min(...candidates.map(triesOf))
  return candidates.filter((candidate) => triesOf(candidate) === least)
}

/** Those that fail fast first, then those whose ejection ends first. */
function byCostOfFailure({ state: left }: Candidate, { state: right }: Candidate): number {
  return (
    Number(isSilent(left)) - Number(isSilent(right)) ||
    unavailableUntilMs(left) - unavailableUntilMs(right)
  )
}

function isSilent({ health, upstream }: TargetState): boolean {
  return health.isSilent || upstream.health.isSilent
}

function unavailableUntilMs({ health, upstream }: TargetState): number {
  return Math.max(health.unavailableUntilMs, upstream.health.unavailableUntilMs)
}

/** Of the target and its upstream, the worse one. */
function availabilityOf({ health, upstream }: TargetState, now: number) {
  const ofUpstream = upstream.health.availability(now)
  if (ofUpstream === 'unavailable') return ofUpstream
  const ofModel = health.availability(now)
  return ofModel === 'available' ? ofUpstream : ofModel
}

export function isOnTrial(state: TargetState, now: number): boolean {
  return availabilityOf(state, now) === 'trial'
}

export function isWorking(state: TargetState, now: number): boolean {
  const { upstream } = state
  return !(upstream.isDraining || upstream.isSuspect) && availabilityOf(state, now) === 'available'
}

/** Whether it should get this request: after an ejection its share grows. */
function getsShare({ health, upstream }: TargetState, now: number, random: () => number): boolean {
  const share = Math.min(health.recoveredShare(now), upstream.health.recoveredShare(now))
  return share === 1 || random() < share
}

export function isSameTier(left: Target, right: Target): boolean {
  return left === right || (left.tier !== undefined && left.tier === right.tier)
}

export function hasCapacity({ upstream }: TargetState, isQueued: boolean): boolean {
  const queued = isQueued ? 0 : upstream.queued
  return upstream.inFlight + queued < upstream.maxInFlight
}
