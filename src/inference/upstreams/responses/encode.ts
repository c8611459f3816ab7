import type {
  CustomTool,
  FunctionTool,
  GenerationRequest,
  OutputFormat,
  Sampling,
  Tool,
  ToolChoice,
  ToolName,
} from '#inference/request.ts'
import { refusePrefill } from '#inference/request.ts'
import { isSameTool } from '#inference/tools.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { assertNever } from '#lib/assert.ts'
import { encodeItem, isSealedFor } from './encode-item.ts'
import type {
  ResponsesBody,
  WireCustomTool,
  WireFormat,
  WireFunctionTool,
  WireNamespaceTool,
  WireTool,
  WireToolChoice,
} from './wire.ts'

/**
 * The body of POST /responses for a request. It always carries the whole context and no ids, and
 * asks the upstream to store nothing: stored state would bind the conversation to one upstream.
 * (vLLM generates the ids that it requires where the key is absent.)
 */
export function encodeRequest(
  request: GenerationRequest,
  target: { model: string; targetName: string; quirks: UpstreamQuirks },
): ResponsesBody {
  refusePrefill(request)
  const { quirks } = target
  const include = encodeInclude(request, target)
  return {
    model: target.model,
    ...(request.instructions === null ? {} : { instructions: request.instructions }),
    input: request.items.flatMap((item) => encodeItem(item, target)),
    ...toolFields(request, quirks),
    ...textField(request, quirks),
    ...(quirks.reasoningEffort === 'none' ? {} : reasoningField(request.reasoning)),
    ...(include.length === 0 ? {} : { include }),
    ...samplingFields(request.sampling),
    ...(quirks.vendorFields ? vendorFields(request) : {}),
    stream: true,
    store: false,
  }
}

type ToolFields = Pick<ResponsesBody, 'tools' | 'tool_choice' | 'parallel_tool_calls'>

/** No call options are sent without tools: some servers reject a choice among none. */
function toolFields(request: GenerationRequest, quirks: UpstreamQuirks): ToolFields {
  if (request.tools.length === 0) return {}
  return {
    tools: encodeTools(request.tools, quirks),
    tool_choice: encodeToolChoice(request.toolChoice, request.tools),
    parallel_tool_calls: request.parallelToolCalls,
  }
}

/** Groups tools by namespace, at the position of the first tool of each. */
function encodeTools(tools: readonly Tool[], quirks: UpstreamQuirks): WireTool[] {
  const wire: WireTool[] = []
  const groups = new Map<string, WireNamespaceTool>()
  for (const tool of tools) {
    const encoded =
      tool.type === 'function' ? encodeFunctionTool(tool, quirks) : encodeCustomTool(tool)
    const { namespace } = tool
    const group = namespace === undefined ? undefined : groups.get(namespace)
    if (namespace === undefined) {
      wire.push(encoded)
    } else if (group !== undefined) {
      group.tools.push(encoded)
    } else {
      // The format requires a description.
      const opened: WireNamespaceTool = {
        type: 'namespace',
        name: namespace,
        description: tool.namespaceDescription ?? namespace,
        tools: [encoded],
      }
      groups.set(namespace, opened)
      wire.push(opened)
    }
  }
  return wire
}

function encodeFunctionTool(tool: FunctionTool, quirks: UpstreamQuirks): WireFunctionTool {
  return {
    type: 'function',
    name: tool.name,
    ...(tool.description === null ? {} : { description: tool.description }),
    parameters: tool.parameters ?? { type: 'object', properties: {} },
    ...strictField(tool.strict, quirks),
  }
}

function encodeCustomTool(tool: CustomTool): WireCustomTool {
  return {
    type: 'custom',
    name: tool.name,
    ...(tool.description === null ? {} : { description: tool.description }),
    ...(tool.grammar === null ? {} : { format: { type: 'grammar', ...tool.grammar } }),
  }
}

function strictField(strict: boolean | null, quirks: UpstreamQuirks): { strict?: boolean } {
  return strict === null ? {} : { strict: strict && quirks.strictTools }
}

function encodeToolChoice(choice: ToolChoice, tools: readonly Tool[]): WireToolChoice {
  switch (choice.type) {
    case 'none':
    case 'auto':
    case 'required':
      return choice.type
    case 'tool':
      return { type: choice.form, ...nameFields(choice) }
    case 'allowed':
      return {
        type: 'allowed_tools',
        mode: choice.mode,
        tools: choice.tools.map((allowed) => ({
          type: tools.find((tool) => isSameTool(tool, allowed))?.type ?? 'function',
          ...nameFields(allowed),
        })),
      }
    default:
      return assertNever(choice)
  }
}

function nameFields({ name, namespace }: ToolName): ToolName {
  return namespace === undefined ? { name } : { name, namespace }
}

function textField(
  request: GenerationRequest,
  quirks: UpstreamQuirks,
): Pick<ResponsesBody, 'text'> {
  const format = encodeFormat(request.format, quirks)
  if (format === null && request.verbosity === null) return {}
  return {
    text: {
      ...(format === null ? {} : { format }),
      ...(request.verbosity === null ? {} : { verbosity: request.verbosity }),
    },
  }
}

function encodeFormat(format: OutputFormat, quirks: UpstreamQuirks): WireFormat | null {
  switch (format.type) {
    case 'text':
      return null
    case 'json-object':
      return { type: 'json_object' }
    case 'json-schema':
      return {
        type: 'json_schema',
        name: format.name,
        ...(format.description === null ? {} : { description: format.description }),
        schema: format.schema,
        ...strictField(format.strict, quirks),
      }
    default:
      return assertNever(format)
  }
}

function reasoningField(
  reasoning: GenerationRequest['reasoning'],
): Pick<ResponsesBody, 'reasoning'> {
  const { effort, summary } = reasoning
  if (effort === null && summary === null) return {}
  return {
    reasoning: {
      ...(effort === null ? {} : { effort }),
      ...(summary === null ? {} : { summary }),
    },
  }
}

/**
 * Since the upstream stores nothing, reasoning can only be continued from a sealed payload. It is
 * requested only where the request asks for reasoning or replays some, because models that do not
 * reason reject the field with 400.
 */
function encodeInclude(
  request: GenerationRequest,
  { quirks, targetName }: { quirks: UpstreamQuirks; targetName: string },
): string[] {
  const { effort, summary } = request.reasoning
  const isRequested = summary !== null || (effort !== null && effort !== 'none')
  const isReplayed = request.items.some(
    (item) => item.type === 'reasoning' && isSealedFor(targetName, item),
  )
  const needsPayload = (isRequested && quirks.reasoningEffort !== 'none') || isReplayed
  return [
    ...(needsPayload ? ['reasoning.encrypted_content'] : []),
    ...(request.sampling.topLogprobs === null ? [] : ['message.output_text.logprobs']),
  ]
}

function samplingFields(sampling: Sampling): Partial<ResponsesBody> {
  return withoutNulls({
    temperature: sampling.temperature,
    top_p: sampling.topP,
    presence_penalty: sampling.presencePenalty,
    frequency_penalty: sampling.frequencyPenalty,
    max_output_tokens: sampling.maxOutputTokens,
    top_logprobs: sampling.topLogprobs,
  })
}

function vendorFields(request: GenerationRequest): Partial<ResponsesBody> {
  return withoutNulls({
    prompt_cache_key: request.promptCacheKey,
    safety_identifier: request.safetyIdentifier,
    service_tier: request.serviceTier,
  })
}

function withoutNulls<T extends Record<string, unknown>>(
  fields: T,
): { [K in keyof T]?: NonNullable<T[K]> } {
  const present: { [K in keyof T]?: NonNullable<T[K]> } = {}
  for (const name in fields) {
    const value = fields[name]
    if (value !== null && value !== undefined) present[name] = value
  }
  return present
}
