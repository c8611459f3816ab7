import { refusePrefill } from '#inference/prefill.ts'
import type { GenerationRequest, OutputFormat } from '#inference/request.ts'
import type { ToolNames } from '#inference/tool-names.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import type { ChatMessage } from './message-form.ts'
import { encodeMessages } from './messages.ts'
import { encodeToolChoice, encodeTools } from './tools.ts'

export type ChatTarget = {
  /** The model's name at the upstream. */
  model: string
  quirks: UpstreamQuirks
  toolNames: ToolNames
}

/**
 * The body of a chat-completions request. Only what the caller gave is sent, so that the defaults
 * of the upstream hold; a key whose value is undefined does not appear in the JSON. Throws
 * `invalid_request` for what chat completions, or this upstream, cannot take.
 */
export function encodeChatRequest(
  request: GenerationRequest,
  target: ChatTarget,
): Record<string, unknown> {
  const { quirks, toolNames, model } = target
  const { sampling } = request
  const tools = encodeTools(toolNames, quirks)
  return {
    model,
    ...encodeConversation(request, { quirks, toolNames }),
    stream: true,
    stream_options: quirks.streamUsage ? { include_usage: true } : undefined,
    tools: tools.length === 0 ? undefined : tools,
    tool_choice: encodeToolChoice(request.toolChoice, toolNames),
    // True is the default everywhere, and some servers refuse a field that they do not know.
    parallel_tool_calls: tools.length > 0 && !request.parallelToolCalls ? false : undefined,
    response_format: encodeFormat(request.format, quirks),
    [quirks.maxTokensField]: sampling.maxOutputTokens ?? undefined,
    temperature: sampling.temperature ?? undefined,
    top_p: sampling.topP ?? undefined,
    presence_penalty: sampling.presencePenalty ?? undefined,
    frequency_penalty: sampling.frequencyPenalty ?? undefined,
    logprobs: sampling.topLogprobs === null ? undefined : true,
    top_logprobs: sampling.topLogprobs ?? undefined,
    ...encodeEffort(request.reasoning.effort, quirks),
    ...(quirks.vendorFields ? encodeVendorFields(request) : {}),
  }
}

/** The messages, and what says that the last of them is not complete. */
function encodeConversation(
  request: GenerationRequest,
  context: Pick<ChatTarget, 'quirks' | 'toolNames'>,
): Record<string, unknown> {
  const { prefill } = context.quirks
  if (prefill === 'none') refusePrefill(request)
  const messages = encodeMessages(request, context)
  if (request.prefilled !== true) return { messages }
  if (prefill === 'continue_final_message') {
    return { messages, continue_final_message: true, add_generation_prompt: false }
  }
  return { messages: prefill === 'prefix' ? withPrefix(messages) : messages }
}

function withPrefix(messages: readonly ChatMessage[]): ChatMessage[] {
  return messages.map((message, index) =>
    message.role === 'assistant' && index === messages.length - 1
      ? { ...message, prefix: true }
      : message,
  )
}

function encodeFormat(format: OutputFormat, quirks: UpstreamQuirks): unknown {
  if (format.type === 'text') return undefined
  if (format.type === 'json-object') return { type: 'json_object' }
  return {
    type: 'json_schema',
    json_schema: {
      name: format.name,
      description: format.description ?? undefined,
      schema: format.schema,
      strict: quirks.strictTools ? (format.strict ?? false) : undefined,
    },
  }
}

/** The levels that every server with a notion of effort takes; others go to the nearest. */
const nearestEffort: Readonly<Record<string, string>> = {
  none: 'none',
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
}

function encodeEffort(effort: string | null, quirks: UpstreamQuirks): Record<string, unknown> {
  if (effort === null || quirks.reasoningEffort === 'none') return {}
  if (quirks.reasoningEffort === 'enable_thinking') {
    return { chat_template_kwargs: { enable_thinking: effort !== 'none' } }
  }
  return { reasoning_effort: nearestEffort[effort] }
}

function encodeVendorFields(request: GenerationRequest): Record<string, unknown> {
  return {
    prompt_cache_key: request.promptCacheKey ?? undefined,
    safety_identifier: request.safetyIdentifier ?? undefined,
    service_tier: request.serviceTier ?? undefined,
    verbosity: request.verbosity ?? undefined,
  }
}
