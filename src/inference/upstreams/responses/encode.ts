import type {
  GenerationRequest,
  NativeTool,
  OutputFormat,
  Tool,
  ToolChoice,
  ToolName,
} from '#inference/request.ts'
import { refusePrefill } from '#inference/request.ts'
import { isSameTool } from '#inference/tools.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { assertNever } from '#lib/assert.ts'
import { type JsonObject, withoutNulls } from '#lib/json.ts'
import { encodeItem, isSealedFor } from './encode-item.ts'

/**
 * The body of POST /responses for a request. It always carries the whole context and no ids, and
 * asks the upstream to store nothing: stored state would bind the conversation to one upstream.
 * (vLLM generates the ids that it requires where the key is absent.)
 */
export function encodeRequest(
  request: GenerationRequest,
  target: { model: string; targetName: string; quirks: UpstreamQuirks },
): JsonObject {
  refusePrefill(request)
  const { quirks } = target
  const { sampling } = request
  const include = encodeInclude(request, target)
  return withoutNulls({
    model: target.model,
    instructions: request.instructions,
    input: request.items.flatMap((item) => encodeItem(item, target)),
    ...toolFields(request, quirks),
    text: encodeText(request, quirks),
    reasoning: quirks.reasoningEffort === 'none' ? null : encodeReasoning(request),
    include: include.length === 0 ? null : include,
    temperature: sampling.temperature,
    top_p: sampling.topP,
    presence_penalty: sampling.presencePenalty,
    frequency_penalty: sampling.frequencyPenalty,
    max_output_tokens: sampling.maxOutputTokens,
    top_logprobs: sampling.topLogprobs,
    max_tool_calls: request.native?.toolCallsMax,
    ...(quirks.vendorFields ? vendorFields(request) : {}),
    store: false,
  })
}

/** No call options are sent without tools: some servers reject a choice among none. */
function toolFields(request: GenerationRequest, quirks: UpstreamQuirks): JsonObject {
  const { tools, native } = request
  if (tools.length === 0 && native === undefined) return {}
  return {
    tools: encodeTools([...tools, ...(native?.tools ?? [])], quirks),
    tool_choice: encodeToolChoice(request.toolChoice, request.tools),
    parallel_tool_calls: request.parallelToolCalls,
  }
}

/** Groups tools by namespace, at the position of the first tool of each. */
function encodeTools(tools: readonly (Tool | NativeTool)[], quirks: UpstreamQuirks): JsonObject[] {
  const wire: JsonObject[] = []
  const groups = new Map<string | undefined, JsonObject[]>()
  for (const tool of tools) {
    const { namespace } = tool
    let group = namespace === undefined ? wire : groups.get(namespace)
    if (group === undefined) {
      group = []
      groups.set(namespace, group)
      // The format requires a description.
      const description = tool.namespaceDescription ?? namespace
      wire.push({ type: 'namespace', name: namespace, description, tools: group })
    }
    group.push('value' in tool ? tool.value : encodeTool(tool, quirks))
  }
  return wire
}

function encodeTool(tool: Tool, quirks: UpstreamQuirks): JsonObject {
  const { type, name, description } = tool
  const head = {
    type,
    name,
    ...(description === null ? {} : { description }),
    ...(tool.async === true && quirks.vendorFields ? { async: true } : {}),
  }
  if (tool.type === 'custom') {
    return { ...head, ...(tool.grammar && { format: { type: 'grammar', ...tool.grammar } }) }
  }
  const parameters = tool.parameters ?? { type: 'object', properties: {} }
  return { ...head, parameters, ...strictField(tool.strict, quirks) }
}

function strictField(strict: boolean | null, quirks: UpstreamQuirks): { strict?: boolean } {
  return strict === null ? {} : { strict: strict && quirks.strictTools }
}

function encodeToolChoice(choice: ToolChoice, tools: readonly Tool[]) {
  switch (choice.type) {
    case 'none':
    case 'auto':
    case 'required':
      return choice.type
    case 'tool':
      return { type: choice.form, ...nameFields(choice) }
    case 'native':
      return choice.value
    case 'allowed':
      return {
        type: 'allowed_tools',
        mode: choice.mode,
        tools: [
          ...choice.tools.map((allowed) => ({
            type: tools.find((tool) => isSameTool(tool, allowed))?.type ?? 'function',
            ...nameFields(allowed),
          })),
          ...(choice.native ?? []),
        ],
      }
    default:
      return assertNever(choice)
  }
}

function nameFields({ name, namespace }: ToolName): ToolName {
  return namespace === undefined ? { name } : { name, namespace }
}

/** Null where the model's default applies. */
function encodeText(
  { format, verbosity }: GenerationRequest,
  quirks: UpstreamQuirks,
): JsonObject | null {
  if (format.type === 'text' && verbosity === null) return null
  return withoutNulls({ format: encodeFormat(format, quirks), verbosity })
}

function encodeFormat(format: OutputFormat, quirks: UpstreamQuirks): JsonObject | null {
  switch (format.type) {
    case 'text':
      return null
    case 'json-object':
      return { type: 'json_object' }
    case 'json-schema': {
      const { name, description, schema, strict } = format
      const head = { type: 'json_schema', name, ...(description === null ? {} : { description }) }
      return { ...head, schema, ...strictField(strict, quirks) }
    }
    default:
      return assertNever(format)
  }
}

/** Null where the model's default applies. */
function encodeReasoning({ reasoning }: GenerationRequest): JsonObject | null {
  const { effort, summary } = reasoning
  return effort === null && summary === null ? null : withoutNulls({ effort, summary })
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
    ...(request.native?.include ?? []),
  ]
}

function vendorFields(request: GenerationRequest): JsonObject {
  return {
    prompt_cache_key: request.promptCacheKey,
    prompt_cache_options: request.promptCacheOptions,
    safety_identifier: request.safetyIdentifier,
    service_tier: request.serviceTier,
  }
}
