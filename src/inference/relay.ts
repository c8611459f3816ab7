import type { EventBatch, GenerationEvent, Relay } from './events.ts'

/** A batch of these events that carries them as frames too, where there are any. */
export function withRelay(events: GenerationEvent[], relay: Relay | undefined): EventBatch {
  return relay === undefined ? events : Object.assign(events, { relay })
}

/** Frames that follow one another as one piece. */
export function joinRelays(one: Relay | undefined, next: Relay | undefined): Relay | undefined {
  if (one === undefined || next === undefined) return one ?? next
  return { ...next, frames: [...one.frames, ...next.frames] }
}
