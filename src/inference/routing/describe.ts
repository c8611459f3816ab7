import type { Health } from './health.ts'
import type { Latency } from './latency.ts'
import type { TargetState, UpstreamState } from './state.ts'

/** From the best to the worst. */
export const upstreamStates = [
  'available',
  'recovering',
  'suspect',
  'half_open',
  'ejected',
  'draining',
] as const
export type UpstreamStateName = (typeof upstreamStates)[number]

export function stateOfUpstream(upstream: UpstreamState, nowMs: number): UpstreamStateName {
  if (upstream.isDraining) return 'draining'
  const state = stateOfHealth(upstream.health, nowMs)
  return upstream.isSuspect && state === 'available' ? 'suspect' : state
}

/** Of the model alone; its upstream may be worse. */
export function stateOfModel({ health }: TargetState, nowMs: number): UpstreamStateName {
  return stateOfHealth(health, nowMs)
}

function stateOfHealth(health: Health, nowMs: number): UpstreamStateName {
  if (health.isEjected) return health.isDue(nowMs) && !health.awaitsProbe ? 'half_open' : 'ejected'
  return health.recoveredShare(nowMs) < 1 ? 'recovering' : 'available'
}

/** Null before the first sample. */
export function usualMsOf({ samples, usualMs }: Latency): number | null {
  return samples === 0 ? null : usualMs
}
