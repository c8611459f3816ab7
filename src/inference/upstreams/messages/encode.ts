import type { GenerationRequest, OutputFormat } from '#inference/request.ts'
import { describeTool, parametersOf, type ToolNames } from '#inference/tool-names.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { encodeThought } from './effort.ts'
import { encodeTurns } from './turns.ts'
import type { MessagesBody, WireTool, WireToolChoice } from './wire.ts'

export type MessagesTarget = {
  /** The model's name at the upstream. */
  model: string
  /** Whose the sealed thoughts of the history must be to be sent. */
  maker: string
  quirks: UpstreamQuirks
  toolNames: ToolNames
}

/**
 * The body of POST /v1/messages for a request of any surface. What the protocol has no field for
 * (penalties, logprobs, verbosity) is left out. Throws `invalid_request` for content that the
 * upstream cannot take.
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
  const { thinking, effort } = encodeThought(request, { quirks, maxTokens, messages })
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

/** Tools that must not be called are named too where none may be: the history may hold calls. */
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

/** A form that the upstream cannot be held to is asked for in words; the answer is checked here. */
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

/** The tiers of OpenAI's formats by the names of this one; others have no counterpart. */
const serviceTiers: Readonly<Record<string, string>> = { auto: 'auto', default: 'standard_only' }

function vendorFields(request: GenerationRequest): Partial<MessagesBody> {
  const tier = serviceTiers[request.serviceTier ?? '']
  return {
    ...(request.safetyIdentifier === null
      ? {}
      : { metadata: { user_id: request.safetyIdentifier } }),
    ...(tier === undefined ? {} : { service_tier: tier }),
    // Elsewhere a key says what may be cached; here a mark does.
    ...(request.promptCacheKey === null ? {} : { cache_control: { type: 'ephemeral' } }),
  }
}
