import type { Target, Upstream } from '#inference/upstream.ts'
import { AppError } from '#lib/errors.ts'
import type { Latency } from './latency.ts'
import type { HealthSettings } from './settings.ts'
import type { Slot } from './slot.ts'
import type { TargetState, UpstreamState } from './state.ts'

/** Requests of our own. Both never reject. */
export type Probes = {
  /** Whether an upstream responds at all. */
  reach(upstream: Upstream): Promise<boolean>
  /** Whether a target gives output. */
  generate(target: Target): Promise<boolean>
}

type CheckDeps = {
  readonly settings: HealthSettings
  readonly nowMs: () => number
  readonly probes: Probes | null
  /** Whether a request may move to another target. */
  readonly hasOther: (slot: Slot) => boolean
  /** An upstream may be used again. */
  readonly onReturn: (upstream: UpstreamState) => void
}

/** Below this pause, an upstream that is found well is not checked again. */
const checkPauseMs = 5_000
/** Fewer samples say nothing about the usual times. */
const samplesMin = 5
/** How much longer than a rarely exceeded time a response may take. */
const patienceFactor = 8
const silenceFactor = 2
/** Whole responses take longer than first events. */
const wholeFactor = 2
/** Requests that one check may end, of those that wait for one upstream. */
const movedPerCheckMax = 10_000

/**
 * Looks after the upstreams that requests wait for, and those that are ejected. Called a few times per
 * second, so that requests need no timers for it.
 */
export function checkUpstream(upstream: UpstreamState, deps: CheckDeps): void {
  const nowMs = deps.nowMs()
  if (upstream.waiting.size > 0) {
    checkSilence(upstream, nowMs, deps)
    movePatientless(upstream, nowMs, deps)
  }
  const { health } = upstream
  if (health.awaitsProbe && health.isDue(nowMs)) void probeUpstream(upstream, deps)
  // An unreachable upstream needs no check of its models.
  if (health.isEjected) return
  for (const state of upstream.models.values()) {
    if (state.health.awaitsProbe && state.health.isDue(nowMs)) void probeTarget(state, deps)
  }
}

/** Checks an upstream that has sent nothing for too long, while a request waits that could move. */
function checkSilence(upstream: UpstreamState, nowMs: number, deps: CheckDeps) {
  const { settings, probes } = deps
  if (probes === null || upstream.isBeingProbed || upstream.health.isEjected) return
  const [oldest] = upstream.waiting
  if (oldest === undefined || nowMs - upstream.probedAtMs < checkPauseMs) return
  const usualMs = silenceFactor * highMs(latencyOf(oldest))
  const silentMs = nowMs - Math.max(oldest.startedAtMs, upstream.heardAtMs)
  if (silentMs < Math.max(settings.silenceMs, usualMs) || !deps.hasOther(oldest)) return
  upstream.isSuspect = true
  void probeUpstream(upstream, deps)
}

async function probeUpstream(upstream: UpstreamState, deps: CheckDeps): Promise<void> {
  const { probes, nowMs } = deps
  if (probes === null || upstream.isBeingProbed) return
  const { health } = upstream
  const beganAtMs = nowMs()
  upstream.isBeingProbed = true
  const isWell = await probes.reach(upstream.upstream)
  upstream.isBeingProbed = false
  upstream.probedAtMs = nowMs()
  const wasSuspect = upstream.isSuspect
  upstream.isSuspect = false
  if (isWell) health.awaitsProbe = false
  else if (upstream.heardAtMs < beganAtMs) {
    health.eject(upstream.probedAtMs, { isSilent: wasSuspect || health.isSilent })
    moveWaiting(upstream, deps)
  }
  if (isWell || wasSuspect) deps.onReturn(upstream)
}

async function probeTarget(state: TargetState, deps: CheckDeps): Promise<void> {
  const { probes, nowMs } = deps
  if (probes === null || state.isBeingProbed) return
  state.isBeingProbed = true
  const isWell = await probes.generate(state.target)
  state.isBeingProbed = false
  if (isWell) state.health.awaitsProbe = false
  else state.health.eject(nowMs(), { isSilent: true })
  if (isWell) deps.onReturn(state.upstream)
}

/** Ends attempts that wait far longer than is usual for their target, so that their calls move on. */
function movePatientless(upstream: UpstreamState, nowMs: number, deps: CheckDeps) {
  for (const slot of upstream.waiting) {
    const waitedMs = nowMs - Math.max(slot.startedAtMs, slot.state.heardAtMs)
    // The others are younger.
    if (nowMs - slot.startedAtMs < deps.settings.patienceMs) return
    if (waitedMs < patienceMs(slot, deps.settings) || !deps.hasOther(slot)) continue
    slot.state.health.eject(nowMs, { isSilent: true })
    moveWaiting(upstream, deps, slot.state)
    return
  }
}

/** How long an attempt may take until its first output, while there are other targets. */
function patienceMs({ state, form }: Slot, settings: HealthSettings): number {
  if (form === 'count') return Number.POSITIVE_INFINITY
  const { firstEvent, whole } = state
  const usual = form === 'whole' ? whole : firstEvent
  // Of whole responses nothing is known beforehand, of a model that is still loading a little.
  if (usual.samples < samplesMin) {
    return form === 'whole' ? Number.POSITIVE_INFINITY : unknownFactor * settings.patienceMs
  }
  const leastMs = settings.patienceMs * (form === 'whole' ? wholeFactor : 1)
  return Math.max(leastMs, patienceFactor * usual.highMs)
}

const unknownFactor = 4

/** Moves requests without any response to other targets. */
function moveWaiting(upstream: UpstreamState, deps: CheckDeps, only?: TargetState) {
  let moved = 0
  for (const slot of [...upstream.waiting]) {
    if (only !== undefined && slot.state !== only) continue
    if (slot.cancellation === null || !deps.hasOther(slot)) continue
    slot.cancellation.abort(silent())
    moved++
    if (moved >= movedPerCheckMax) return
  }
}

function silent(): AppError {
  return new AppError('upstream_first_event_timeout', 'The upstream has stopped to respond.')
}

function latencyOf({ state, form }: Slot): Latency {
  return form === 'whole' ? state.whole : state.firstEvent
}

function highMs(latency: Latency): number {
  return latency.samples < samplesMin ? 0 : latency.highMs
}
