import type { Usage } from '#inference/events.ts'

/** The usage of a message, with every field that clients expect. */
export type MessageUsage = {
  /** Without cached tokens: the complete input is the sum of this and the next two. */
  readonly input_tokens: number
  readonly cache_creation_input_tokens: number
  readonly cache_read_input_tokens: number
  readonly cache_creation: {
    readonly ephemeral_5m_input_tokens: number
    readonly ephemeral_1h_input_tokens: number
  }
  readonly output_tokens: number
  readonly output_tokens_details: { readonly thinking_tokens: number } | null
  readonly server_tool_use: {
    readonly web_search_requests: number
    readonly web_fetch_requests: number
  } | null
  readonly service_tier: null
  readonly speed: null
  readonly inference_geo: null
}

/** An estimate, before or without the count of the upstream. */
export function estimatedUsage(
  counts: { inputTokens: number; outputTokens: number },
  webSearches = 0,
): MessageUsage {
  const usage = { ...counts, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }
  return { ...renderUsage(usage, webSearches), output_tokens_details: null }
}

export function renderUsage(usage: Omit<Usage, 'totalTokens'>, webSearches: number): MessageUsage {
  const { inputTokens, cachedTokens, cacheWriteTokens, outputTokens, reasoningTokens } = usage
  return {
    input_tokens: Math.max(0, inputTokens - cachedTokens - cacheWriteTokens),
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cachedTokens,
    // Upstreams do not report the lifetime; five minutes is the default of the format.
    cache_creation: { ephemeral_5m_input_tokens: cacheWriteTokens, ephemeral_1h_input_tokens: 0 },
    output_tokens: outputTokens,
    output_tokens_details: { thinking_tokens: Math.min(reasoningTokens, outputTokens) },
    server_tool_use:
      webSearches === 0 ? null : { web_search_requests: webSearches, web_fetch_requests: 0 },
    service_tier: null,
    speed: null,
    inference_geo: null,
  }
}
