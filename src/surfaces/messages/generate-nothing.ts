import type { EventBatch } from '#inference/events.ts'

/** An answer of no tokens at all, as it was asked for. */
export async function* generateNothing(
  inputTokens: number,
): AsyncGenerator<EventBatch, void, void> {
  const usage = {
    inputTokens,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: 0,
    reasoningTokens: 0,
    totalTokens: inputTokens,
  }
  yield [{ type: 'generation-start' }, { type: 'finish', reason: 'length', rawReason: null, usage }]
}
