import type { GenerationRequest, OutputFormat } from '#inference/request.ts'
import { describeTool, parametersOf, requiresCall, type ToolNames } from '#inference/tools.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { type JsonObject, withoutNulls } from '#lib/json.ts'
import { encodeTurns, isThinking } from './turns.ts'
import type { WireMessage } from './wire.ts'

export type MessagesTarget = {
  /** The model's name at the upstream. */
  model: string
  /** The name of the target, as `ReasoningItem.sealedBy` records it. */
  targetName: string
  quirks: UpstreamQuirks
  toolNames: ToolNames
}

/**
 * The body of POST /v1/messages for a request of any surface. Parameters without a field in the
 * protocol (penalties, logprobs, verbosity) are dropped. Throws `invalid_request` for content that
 * the upstream does not accept.
 */
export function encodeMessagesRequest(
  request: GenerationRequest,
  target: MessagesTarget,
): JsonObject {
  const { quirks } = target
  const { sampling } = request
  const { system, messages } = encodeTurns(request, target)
  const { format, instruction } = encodeFormat(request.format, quirks)
  const texts = [system, instruction].filter((text) => text !== '')
  const maxTokens = sampling.maxOutputTokens ?? quirks.defaultMaxTokens
  const { thinking, effort } = encodeThinkingFields(request, { quirks, maxTokens, messages })
  const hasOutputConfig = effort !== null || format !== null
  return withoutNulls({
    model: target.model,
    max_tokens: maxTokens,
    system: texts.length === 0 ? null : texts.join('\n\n'),
    messages,
    ...toolFields(request, target),
    thinking,
    output_config: hasOutputConfig ? withoutNulls({ effort, format }) : null,
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_k: sampling.topK,
    stop_sequences: sampling.stopSequences.length === 0 ? null : sampling.stopSequences,
    ...(quirks.vendorFields ? vendorFields(request) : {}),
  })
}

/** With `none`, all tools are declared nevertheless, because the history may contain calls. */
function toolFields(request: GenerationRequest, { toolNames, quirks }: MessagesTarget): JsonObject {
  const tools = request.toolChoice.type === 'none' ? request.tools : toolNames.tools
  const native = request.native?.tools ?? []
  if (tools.length === 0 && native.length === 0) return {}
  const encoded = tools.map((tool) => {
    const isStrict = tool.type === 'function' && tool.strict === true && quirks.strictTools
    return withoutNulls({
      name: toolNames.wireName(tool),
      description: describeTool(tool),
      input_schema: parametersOf(tool),
      strict: isStrict ? true : null,
    })
  })
  return {
    tools: [...encoded, ...native.map(({ value }) => value)],
    tool_choice: encodeToolChoice(request, toolNames),
  }
}

/** Null where the default of the protocol applies. */
function encodeToolChoice(
  { toolChoice, parallelToolCalls }: GenerationRequest,
  toolNames: ToolNames,
): JsonObject | null {
  const single = parallelToolCalls ? {} : { disable_parallel_tool_use: true }
  switch (toolChoice.type) {
    case 'none':
      return { type: 'none' }
    case 'tool':
      return { type: 'tool', name: toolNames.wireName(toolChoice), ...single }
    case 'native':
      return { ...toolChoice.value, ...single }
    case 'required':
      return { type: 'any', ...single }
    case 'allowed':
      return { type: toolChoice.mode === 'required' ? 'any' : 'auto', ...single }
    case 'auto':
      return parallelToolCalls ? null : { type: 'auto', ...single }
  }
}

/** A format that the upstream does not enforce is requested by an instruction; Sluice validates it. */
function encodeFormat(
  format: OutputFormat,
  quirks: UpstreamQuirks,
): { format: JsonObject | null; instruction: string } {
  if (format.type === 'text') return { format: null, instruction: '' }
  if (format.type === 'json-object') return { format: null, instruction: jsonInstruction }
  const { schema, description } = format
  if (quirks.outputFormat) return { format: { type: 'json_schema', schema }, instruction: '' }
  const purpose = description === null ? [] : [description]
  const lines = [jsonInstruction, ...purpose, 'Its schema:', JSON.stringify(schema)]
  return { format: null, instruction: lines.join('\n') }
}

const jsonInstruction = 'Answer with JSON alone, without any text or code fence around it.'

/** Maps the service tiers of OpenAI's formats; other tiers have no counterpart. */
const serviceTiers: Readonly<Record<string, string>> = { auto: 'auto', default: 'standard_only' }

function vendorFields({ safetyIdentifier, serviceTier, promptCacheKey }: GenerationRequest) {
  return {
    metadata: safetyIdentifier === null ? null : { user_id: safetyIdentifier },
    service_tier: serviceTiers[serviceTier ?? ''] ?? null,
    // The counterpart of a prompt cache key is a cache breakpoint.
    cache_control: promptCacheKey === null ? null : { type: 'ephemeral' },
  }
}

/** The smallest thinking budget that the protocol accepts. */
const budgetTokensMin = 1_024
/** The fewest tokens that are left for output other than thinking. */
const outputTokensMin = 1_024

/** The budgets of efforts, for upstreams that take a budget. */
const budgets: Readonly<Record<string, number>> = {
  minimal: 1_024,
  low: 2_048,
  medium: 8_192,
  high: 16_384,
  xhigh: 24_576,
  max: 32_768,
}

type ThinkingContext = {
  quirks: UpstreamQuirks
  /** Includes thinking. */
  maxTokens: number
  messages: readonly WireMessage[]
}

/** The thinking parameters; nulls where the upstream's default applies. */
function encodeThinkingFields(
  request: GenerationRequest,
  { quirks, maxTokens, messages }: ThinkingContext,
): { thinking: JsonObject | null; effort: string | null } {
  const { effort, summary, budgetTokens } = request.reasoning
  const isRequested = effort !== null || budgetTokens !== undefined || summary !== null
  if (quirks.thinking === 'none' || !isRequested) return { thinking: null, effort: null }
  if (effort === 'none') return { thinking: { type: 'disabled' }, effort: null }
  // Thinking cannot be combined with a forced tool call.
  const isForced = requiresCall(request.toolChoice)
  if (quirks.thinking === 'adaptive') {
    const display = summary === null ? {} : { display: 'summarized' }
    return {
      thinking: isForced ? null : { type: 'adaptive', ...display },
      effort: effort === 'minimal' ? 'low' : effort,
    }
  }
  const budget = budgetTokens ?? budgets[effort ?? '']
  if (budget === undefined || isForced || continuesTurnWithoutThinking(messages)) {
    return { thinking: null, effort: null }
  }
  const tokens = Math.min(Math.max(budget, budgetTokensMin), maxTokens - outputTokensMin)
  return {
    thinking: tokens < budgetTokensMin ? null : { type: 'enabled', budget_tokens: tokens },
    effort: null,
  }
}

/**
 * Whether the model continues a turn that began without thinking, or whose thinking cannot be sent
 * back; servers reject thinking in the middle of such a turn.
 */
function continuesTurnWithoutThinking(messages: readonly WireMessage[]): boolean {
  const last = messages.at(-1)
  const hasResults = last?.role === 'user' && last.content[0]?.type === 'tool_result'
  const asking = hasResults ? messages.findLast(({ role }) => role === 'assistant') : undefined
  if (asking?.role !== 'assistant') return false
  const [first] = asking.content
  return first === undefined || !isThinking(first)
}
