import type { Target } from '#inference/upstream.ts'
import type { Latency } from './latency.ts'
import type { TargetState } from './state.ts'

/** A target that may be chosen, with its state. */
export type Candidate = { readonly target: Target; readonly state: TargetState }

/** A session leaves its upstream when that has more than this multiple of its share of requests. */
const loadBound = 1.25
/** Below this many requests in flight it stays: an inference server works in batches. */
const sessionInFlightMin = 8
/** Slower by less than this factor counts as equal: times to the first event vary with the input. */
const equalFactor = 2
/** However slow, a target keeps a part of its share, so that its recovery is noticed. */
const slownessMax = 5
/** Fewer samples say nothing. */
const samplesMin = 3

/** The better of two candidates chosen at random by load and latency; equal ones take turns. */
export function chooseByLoad(candidates: readonly Candidate[], random: () => number): Candidate {
  const [first, second] = candidates
  if (first === undefined) throw new Error('no candidates')
  if (second === undefined) return first
  if (candidates.length === 2) return betterOf(first, second, random)
  const at = Math.floor(random() * candidates.length)
  const other = Math.floor(random() * (candidates.length - 1))
  return betterOf(
    candidates[at] ?? first,
    candidates[other >= at ? other + 1 : other] ?? first,
    random,
  )
}

function betterOf(left: Candidate, right: Candidate, random: () => number): Candidate {
  const ratio = slowness(left.state, right.state)
  const leftWeight = weightOf(left.target) / Math.max(1, ratio)
  const rightWeight = weightOf(right.target) / Math.max(1, 1 / ratio)
  const loadDifference =
    left.state.upstream.inFlight / leftWeight - right.state.upstream.inFlight / rightWeight
  // Idle upstreams take turns. There the slower one only gets enough to notice that it recovered.
  const leftStep = Math.max(1, ratio) / leftWeight
  const rightStep = Math.max(1, 1 / ratio) / rightWeight
  // One that did not take part for some time does not make up for it.
  const lagMax = leftStep + rightStep
  const leftEnd = Math.max(left.state.turn, right.state.turn - lagMax) + leftStep
  const rightEnd = Math.max(right.state.turn, left.state.turn - lagMax) + rightStep
  const isLeft = (loadDifference || leftEnd - rightEnd || random() - 0.5) < 0
  const chosen = isLeft ? left : right
  chosen.state.turn = isLeft ? leftEnd : rightEnd
  return chosen
}

/** How many times slower the left one is, from the factor that counts; 1 for about equal ones. */
function slowness(left: TargetState, right: TargetState): number {
  const isStreamed = hasUsual(left.firstEvent) && hasUsual(right.firstEvent)
  if (!isStreamed && !(hasUsual(left.whole) && hasUsual(right.whole))) return 1
  const of = isStreamed ? 'firstEvent' : 'whole'
  const ratio = left[of].usualMs / right[of].usualMs
  // Without a jump at the factor, so that noise around it does not move the whole load.
  if (ratio > equalFactor) return Math.min(slownessMax, ratio - equalFactor + 1)
  if (ratio < 1 / equalFactor) return 1 / Math.min(slownessMax, 1 / ratio - equalFactor + 1)
  return 1
}

function hasUsual({ samples, usualMs }: Latency): boolean {
  return samples >= samplesMin && usualMs > 0
}

/**
 * The candidate that comes first for this session by rendezvous hashing, independent of their order:
 * another list of upstreams moves only the sessions of those that were added or removed. It yields to
 * the next one while it has clearly more than its share of requests.
 */
export function chooseForSession(candidates: readonly Candidate[], session: string): Candidate {
  let inFlight = 1
  let weights = 0
  for (const { target, state } of candidates) {
    inFlight += state.upstream.inFlight
    weights += weightOf(target)
  }
  const ranked = candidates
    .map((candidate) => ({ candidate, rank: rankOf(candidate.target, session) }))
    .sort((left, right) => left.rank - right.rank)
  const hasShareLeft = ({ target, state }: Candidate) => {
    const share = (loadBound * inFlight * weightOf(target)) / weights
    return state.upstream.inFlight < Math.max(sessionInFlightMin, Math.ceil(share))
  }
  const [first] = ranked
  const chosen = ranked.find(({ candidate }) => hasShareLeft(candidate)) ?? first
  if (chosen === undefined) throw new Error('no candidates')
  return chosen.candidate
}

function rankOf(target: Target, session: string): number {
  const score = hashToUnit(`${session}\0${target.upstream.name}`)
  return -Math.log(1 - score) / weightOf(target)
}

function weightOf({ weight = 1 }: Target): number {
  return weight
}

/** From 0 up to but not 1, the same in every process. */
function hashToUnit(text: string): number {
  return Number(Bun.hash.wyhash(text) >> 11n) / 2 ** 53
}
