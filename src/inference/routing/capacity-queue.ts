import type { ModelCall } from '#inference/inference.ts'
import type { CancelSignal } from '#lib/cancellation.ts'
import { AppError } from '#lib/errors.ts'
import type { Slot } from './slot.ts'
import type { UpstreamState } from './state.ts'

/** A call for which no target has capacity now. */
export type CapacityRequest = {
  readonly call: ModelCall
  /** The upstreams that may serve it. */
  readonly upstreams: readonly UpstreamState[]
  /** Whether an earlier attempt has failed: it was let in before. */
  readonly isRetry: boolean
  /** A slot, if there is capacity by now; ignores `UpstreamState.queued`. */
  take(): Slot | null
  /** Ends the wait. */
  readonly signal: CancelSignal
}

/** Where calls wait for capacity. It keeps `UpstreamState.queued`. */
export type CapacityQueue = {
  /** Resolves with a slot. Rejects with an `AppError` when it refuses, or the reason of the signal. */
  wait(request: CapacityRequest): Promise<Slot>
  /** An attempt has ended, and its slot is free. */
  ended(slot: Slot): void
  /** An upstream has become available again. */
  freed(upstream: UpstreamState): void
}

const retryAfterS = 1

export function allBusy(): AppError {
  return new AppError('upstream_overloaded', 'All upstreams of the model are busy; retry.', {
    retryAfterS,
  })
}

/** Refuses what exceeds the capacity. */
export const refusingQueue: CapacityQueue = {
  wait: () => Promise.reject(allBusy()),
  ended() {},
  freed() {},
}
