import type { Usage } from '#inference/events.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'

/**
 * The counts that an answer gave so far. They come at its start and at its end, where each is of the
 * whole answer again; some servers know the input only at the end, and say 0 or null before.
 */
export type UsageCount = {
  input: Counts
  outputTokens: number
  reasoningTokens: number
  seen: boolean
}

type Counts = { fresh: number; cached: number; written: number }

export function createUsageCount(): UsageCount {
  const input = { fresh: 0, cached: 0, written: 0 }
  return { input, outputTokens: 0, reasoningTokens: 0, seen: false }
}

export function addUsage(count: UsageCount, wire: unknown): void {
  if (!isRecord(wire)) return
  const { input } = count
  const details = isRecord(wire['output_tokens_details']) ? wire['output_tokens_details'] : {}
  count.seen = true
  input.fresh = latest(wire, 'input_tokens', input.fresh)
  input.cached = latest(wire, 'cache_read_input_tokens', input.cached)
  input.written = latest(wire, 'cache_creation_input_tokens', input.written)
  count.outputTokens = latest(wire, 'output_tokens', count.outputTokens)
  count.reasoningTokens = latest(details, 'thinking_tokens', count.reasoningTokens)
}

/** The protocol counts what came from the cache, or went into it, beside the rest of the input. */
export function readUsage({
  input,
  outputTokens,
  reasoningTokens,
  seen,
}: UsageCount): Usage | null {
  if (!seen) return null
  const inputTokens = input.fresh + input.cached + input.written
  return {
    inputTokens,
    cachedTokens: input.cached,
    cacheWriteTokens: input.written,
    outputTokens,
    reasoningTokens,
    totalTokens: inputTokens + outputTokens,
  }
}

function latest(wire: JsonObject, name: string, before: number): number {
  const value = wire[name]
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : before
}
