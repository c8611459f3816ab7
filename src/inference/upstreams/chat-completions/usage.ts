import type { Usage } from '#inference/events.ts'
import { isRecord } from '#lib/json.ts'
import type { ChatUsage } from './wire.ts'

/**
 * The token counts of an upstream, or null where it gave none. Output counts hold the reasoning,
 * except where the total proves that a server counts it beside (xAI: 12 + 2 + 340 = 354).
 */
export function readUsage(wire: unknown): Usage | null {
  if (!isRecord(wire)) return null
  const usage: ChatUsage = wire
  const inputTokens = readCount(usage.prompt_tokens)
  const completionTokens = readCount(usage.completion_tokens)
  if (inputTokens === null && completionTokens === null) return null
  const input = inputTokens ?? 0
  const completion = completionTokens ?? 0
  const reasoningTokens = readDetail(usage.completion_tokens_details, 'reasoning_tokens') ?? 0
  const total = readCount(usage.total_tokens)
  const isBeside =
    reasoningTokens > completion ||
    (reasoningTokens > 0 && total === input + completion + reasoningTokens)
  const outputTokens = isBeside ? completion + reasoningTokens : completion
  return {
    inputTokens: input,
    cachedTokens:
      readDetail(usage.prompt_tokens_details, 'cached_tokens') ??
      readCount(usage.prompt_cache_hit_tokens) ??
      0,
    cacheWriteTokens: readDetail(usage.prompt_tokens_details, 'cache_write_tokens') ?? 0,
    outputTokens,
    reasoningTokens,
    totalTokens: total ?? input + outputTokens,
  }
}

function readDetail(details: unknown, name: string): number | null {
  return isRecord(details) ? readCount(details[name]) : null
}

function readCount(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null
}
