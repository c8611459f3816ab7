import type { EventBatch } from '#inference/events.ts'

/** A turn that only leaves its input with us: it ends without an answer, and asks no model. */
export async function* warmUp(): AsyncGenerator<EventBatch, void, void> {
  yield [
    { type: 'generation-start' },
    { type: 'finish', reason: 'stop', rawReason: null, usage: null },
  ]
}
