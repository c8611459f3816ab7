import type { FinishReason, Usage } from '#inference/events.ts'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'

/** Why a message ended. */
export type Ending = { reason: FinishReason; rawReason: string; stopSequence?: string }

const reasons: Readonly<Record<string, FinishReason>> = {
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  stop_sequence: 'stop-sequence',
  refusal: 'content-filter',
}

/**
 * An unknown stop reason ends a message normally, as `end_turn` and `pause_turn` do. Tool calls
 * take precedence over it: some servers report such a reason after calls.
 */
export function readEnding(
  rawReason: string,
  stopSequence: unknown,
  hasToolCalls: boolean,
): Ending {
  const reason = reasons[rawReason] ?? (hasToolCalls ? 'tool-calls' : 'stop')
  return reason === 'stop-sequence' && typeof stopSequence === 'string'
    ? { reason, rawReason, stopSequence }
    : { reason, rawReason }
}

/** Whether the output of the model was truncated. */
export function isTruncated({ reason }: Ending): boolean {
  return reason === 'length' || reason === 'content-filter'
}

/**
 * The token counts received so far. They are sent at the start and at the end, each time for the
 * whole message; some servers know the input only at the end and send 0 or null before.
 */
export function createUsageCounts() {
  return {
    uncachedInput: 0,
    cachedInput: 0,
    cacheWrites: 0,
    output: 0,
    reasoning: 0,
    isPresent: false,
  }
}

export function updateUsage(counts: ReturnType<typeof createUsageCounts>, wire: unknown): void {
  if (!isRecord(wire)) return
  counts.isPresent = true
  counts.uncachedInput = latest(wire, 'input_tokens', counts.uncachedInput)
  counts.cachedInput = latest(wire, 'cache_read_input_tokens', counts.cachedInput)
  counts.cacheWrites = latest(wire, 'cache_creation_input_tokens', counts.cacheWrites)
  counts.output = latest(wire, 'output_tokens', counts.output)
  const details = asRecord(wire['output_tokens_details'])
  counts.reasoning = latest(details, 'thinking_tokens', counts.reasoning)
}

/** The protocol does not include cache reads and writes in its input count. */
export function usageOf(counts: ReturnType<typeof createUsageCounts>): Usage | null {
  if (!counts.isPresent) return null
  const inputTokens = counts.uncachedInput + counts.cachedInput + counts.cacheWrites
  return {
    inputTokens,
    cachedTokens: counts.cachedInput,
    cacheWriteTokens: counts.cacheWrites,
    outputTokens: counts.output,
    reasoningTokens: counts.reasoning,
    totalTokens: inputTokens + counts.output,
  }
}

function latest(wire: JsonObject, name: string, previous: number): number {
  const value = wire[name]
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : previous
}
