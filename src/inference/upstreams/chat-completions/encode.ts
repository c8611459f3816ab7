import {
  type GenerationRequest,
  type OutputFormat,
  refusePrefill,
  type Tool,
  type ToolChoice,
} from '#inference/request.ts'
import { describeTool, parametersOf, requiresCall, type ToolNames } from '#inference/tools.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { encodeMessages } from './messages.ts'
import type { ChatMessage } from './wire.ts'

export type ChatTarget = {
  /** The model's name at the upstream. */
  model: string
  /** The name of the target, as `ReasoningItem.sealedBy` records it. */
  targetName: string
  quirks: UpstreamQuirks
  toolNames: ToolNames
}

/**
 * The body of a chat-completions request. Only fields that the client set are sent, so the defaults
 * of the upstream apply; a key with the value undefined is absent from the JSON. Throws
 * `invalid_request` for content that chat completions, or this upstream, does not accept.
 */
export function encodeChatRequest(request: GenerationRequest, target: ChatTarget): JsonObject {
  const { quirks, toolNames, model, targetName } = target
  const { sampling } = request
  const tools = encodeTools(toolNames, quirks)
  const body: JsonObject = { model, messages: [] }
  const add = (name: string, value: unknown) => {
    if (value !== undefined && value !== null) body[name] = value
  }
  addConversation(body, request, { quirks, toolNames, targetName })
  if (tools.length > 0) body['tools'] = tools
  add('tool_choice', encodeToolChoice(request.toolChoice, toolNames))
  // True is the default everywhere, and some servers reject unknown fields.
  if (tools.length > 0 && !request.parallelToolCalls) body['parallel_tool_calls'] = false
  add('response_format', encodeFormat(request.format, quirks))
  add(quirks.maxTokensField, sampling.maxOutputTokens)
  add('temperature', sampling.temperature)
  add('top_p', sampling.topP)
  // Not part of OpenAI's API, but most servers take it; one that refuses it is remembered.
  add('top_k', sampling.topK)
  add('presence_penalty', sampling.presencePenalty)
  add('frequency_penalty', sampling.frequencyPenalty)
  if (sampling.topLogprobs !== null) body['logprobs'] = true
  add('top_logprobs', sampling.topLogprobs)
  addEffort(body, request.reasoning.effort, quirks)
  if (quirks.vendorFields) {
    add('prompt_cache_key', request.promptCacheKey)
    add('safety_identifier', request.safetyIdentifier)
    add('service_tier', request.serviceTier)
    add('verbosity', request.verbosity)
  }
  return body
}

/** The messages, and the fields that make the model continue the last one. */
function addConversation(
  body: JsonObject,
  request: GenerationRequest,
  context: Pick<ChatTarget, 'quirks' | 'toolNames' | 'targetName'>,
): void {
  const { prefill } = context.quirks
  if (prefill === 'none') refusePrefill(request)
  const messages = encodeMessages(request, context)
  const isContinued = request.prefilled === true
  body['messages'] = isContinued && prefill === 'prefix' ? withPrefix(messages) : messages
  if (isContinued && prefill === 'continue_final_message') {
    body['continue_final_message'] = true
    body['add_generation_prompt'] = false
  }
}

function withPrefix(messages: readonly ChatMessage[]): ChatMessage[] {
  return messages.map((message, index) =>
    message.role === 'assistant' && index === messages.length - 1
      ? { ...message, prefix: true }
      : message,
  )
}

/** The tools as the `tools` of a chat request. */
export function encodeTools(toolNames: ToolNames, quirks: UpstreamQuirks): unknown[] {
  return toolNames.tools.map((tool) => ({
    type: 'function',
    function: {
      name: toolNames.wireName(tool),
      description: describeTool(tool) ?? undefined,
      parameters: parametersOf(tool),
      ...(quirks.strictTools && tool.type === 'function' ? { strict: isStrict(tool) } : {}),
    },
  }))
}

/** The `tool_choice` of a chat request; undefined where it is the upstream's default. */
function encodeToolChoice(choice: ToolChoice, toolNames: ToolNames): unknown {
  if (choice.type === 'tool') {
    return { type: 'function', function: { name: toolNames.wireName(choice) } }
  }
  return requiresCall(choice) ? 'required' : undefined
}

/** Without an explicit `strict`, a tool is strict if its schema meets the requirements. */
function isStrict(tool: Extract<Tool, { type: 'function' }>): boolean {
  return tool.strict ?? isClosedSchema(tool.parameters, 0)
}

const schemaDepthMax = 32

/** Strict mode requires every object to be closed and every property to be required. */
function isClosedSchema(schema: unknown, depth: number): boolean {
  if (!isRecord(schema) || depth > schemaDepthMax) return false
  if (schema['type'] === 'array') return isClosedSchema(schema['items'], depth + 1)
  if (schema['type'] !== 'object') return typeof schema['type'] === 'string'
  const { properties, required } = schema
  if (schema['additionalProperties'] !== false || !isRecord(properties)) return false
  const names = Object.keys(properties)
  if (!Array.isArray(required) || names.some((name) => !required.includes(name))) return false
  return names.every((name) => isClosedSchema(properties[name], depth + 1))
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

/** Maps efforts to the levels that every server with reasoning effort accepts. */
const nearestEffort: Readonly<Record<string, string>> = {
  none: 'none',
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
}

function addEffort(body: JsonObject, effort: string | null, quirks: UpstreamQuirks): void {
  if (effort === null || quirks.reasoningEffort === 'none') return
  if (quirks.reasoningEffort === 'enable_thinking') {
    body['chat_template_kwargs'] = { enable_thinking: effort !== 'none' }
  } else body['reasoning_effort'] = nearestEffort[effort]
}
