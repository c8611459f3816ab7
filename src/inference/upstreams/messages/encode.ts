import type { GenerationRequest, OutputFormat } from '#inference/request.ts'
import { describeTool, parametersOf, requiresCall, type ToolNames } from '#inference/tools.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { encodeTurns, isThinking } from './turns.ts'
import type { MessagesBody, WireMessage, WireThinking, WireTool, WireToolChoice } from './wire.ts'

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
): MessagesBody {
  const { quirks, toolNames } = target
  const { sampling } = request
  const { system, messages } = encodeTurns(request, target)
  const format = encodeFormat(request.format, quirks)
  const texts = [system, format.instruction].filter((text) => text !== '')
  const maxTokens = sampling.maxOutputTokens ?? quirks.defaultMaxTokens
  const { thinking, effort } = encodeThinkingFields(request, { quirks, maxTokens, messages })
  const tools = encodeTools(request, target)
  return {
    model: target.model,
    max_tokens: maxTokens,
    ...(texts.length === 0 ? {} : { system: texts.join('\n\n') }),
    messages,
    ...(tools.length === 0 ? {} : { tools, ...toolChoiceField(request, toolNames) }),
    ...(thinking === null ? {} : { thinking }),
    ...outputConfigField(effort, format.wire),
    ...(sampling.temperature === null ? {} : { temperature: sampling.temperature }),
    ...(sampling.topP === null ? {} : { top_p: sampling.topP }),
    ...(sampling.topK === null ? {} : { top_k: sampling.topK }),
    ...(sampling.stopSequences.length === 0 ? {} : { stop_sequences: sampling.stopSequences }),
    ...(quirks.vendorFields ? vendorFields(request) : {}),
    stream: true,
  }
}

/** With `none`, all tools are declared nevertheless, because the history may contain calls. */
function encodeTools(
  request: GenerationRequest,
  { toolNames, quirks }: MessagesTarget,
): WireTool[] {
  const tools = request.toolChoice.type === 'none' ? request.tools : toolNames.tools
  return tools.map((tool) => {
    const description = describeTool(tool)
    const isStrict = tool.type === 'function' && tool.strict === true && quirks.strictTools
    return {
      name: toolNames.wireName(tool),
      ...(description === null ? {} : { description }),
      input_schema: parametersOf(tool),
      ...(isStrict ? { strict: true } : {}),
    }
  })
}

function toolChoiceField(
  { toolChoice, parallelToolCalls }: GenerationRequest,
  toolNames: ToolNames,
): { tool_choice?: WireToolChoice } {
  const single = parallelToolCalls ? {} : { disable_parallel_tool_use: true as const }
  switch (toolChoice.type) {
    case 'none':
      return { tool_choice: { type: 'none' } }
    case 'tool':
      return { tool_choice: { type: 'tool', name: toolNames.wireName(toolChoice), ...single } }
    case 'required':
      return { tool_choice: { type: 'any', ...single } }
    case 'allowed':
      return { tool_choice: { type: toolChoice.mode === 'required' ? 'any' : 'auto', ...single } }
    case 'auto':
      return parallelToolCalls ? {} : { tool_choice: { type: 'auto', ...single } }
  }
}

type EncodedFormat = { wire: { type: 'json_schema'; schema: object } | null; instruction: string }

/** A format that the upstream does not enforce is requested by an instruction; Sluice validates it. */
function encodeFormat(format: OutputFormat, quirks: UpstreamQuirks): EncodedFormat {
  if (format.type === 'text') return { wire: null, instruction: '' }
  if (format.type === 'json-object') return { wire: null, instruction: jsonInstruction }
  const { schema, description } = format
  if (quirks.outputFormat) return { wire: { type: 'json_schema', schema }, instruction: '' }
  const purpose = description === null ? [] : [description]
  const lines = [jsonInstruction, ...purpose, 'Its schema:', JSON.stringify(schema)]
  return { wire: null, instruction: lines.join('\n') }
}

const jsonInstruction = 'Answer with JSON alone, without any text or code fence around it.'

function outputConfigField(
  effort: string | null,
  format: EncodedFormat['wire'],
): Pick<MessagesBody, 'output_config'> {
  if (effort === null && format === null) return {}
  return {
    output_config: {
      ...(effort === null ? {} : { effort }),
      ...(format === null ? {} : { format }),
    },
  }
}

/** Maps the service tiers of OpenAI's formats; other tiers have no counterpart. */
const serviceTiers: Readonly<Record<string, string>> = { auto: 'auto', default: 'standard_only' }

function vendorFields(request: GenerationRequest): Partial<MessagesBody> {
  const tier = serviceTiers[request.serviceTier ?? '']
  return {
    ...(request.safetyIdentifier === null
      ? {}
      : { metadata: { user_id: request.safetyIdentifier } }),
    ...(tier === undefined ? {} : { service_tier: tier }),
    // The counterpart of a prompt cache key is a cache breakpoint.
    ...(request.promptCacheKey === null ? {} : { cache_control: { type: 'ephemeral' } }),
  }
}

type ThinkingContext = {
  quirks: UpstreamQuirks
  /** Includes thinking. */
  maxTokens: number
  messages: readonly WireMessage[]
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

/** The thinking parameters; nulls where the upstream's default applies. */
function encodeThinkingFields(
  request: Pick<GenerationRequest, 'reasoning' | 'toolChoice'>,
  { quirks, maxTokens, messages }: ThinkingContext,
): { thinking: WireThinking | null; effort: string | null } {
  const { effort, summary, budgetTokens } = request.reasoning
  const isRequested = effort !== null || budgetTokens !== undefined || summary !== null
  if (quirks.thinking === 'none' || !isRequested) return { thinking: null, effort: null }
  if (effort === 'none') return { thinking: { type: 'disabled' }, effort: null }
  // Thinking cannot be combined with a forced tool call.
  const isForced = requiresCall(request.toolChoice)
  if (quirks.thinking === 'adaptive') {
    const display = summary === null ? {} : { display: 'summarized' as const }
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
