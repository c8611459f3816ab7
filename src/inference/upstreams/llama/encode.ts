import type { GenerationRequest, OutputFormat, Sampling } from '#inference/request.ts'
import {
  describeTool,
  isSameTool,
  parametersOf,
  requiresCall,
  type ToolNames,
} from '#inference/tools.ts'
import { encodeHistory } from './history.ts'
import type { ChatFunction, OutputConstraint, Prompt, PromptSampling } from './wire.ts'

/** The default of llama.cpp. */
const temperatureDefault = 0.8
/** The most parallel calls of one turn. */
const callsMax = 64

/**
 * The prompt of a request for a local model. The package supports either functions or an output
 * format, so with tools the format is requested by an instruction, and the output validated later.
 */
export function encodePrompt(
  request: GenerationRequest,
  { toolNames, seed }: { toolNames: ToolNames; seed: number },
): Prompt {
  const functions = encodeFunctions(request, toolNames)
  const format = encodeFormat(request.format)
  return {
    history: encodeHistory(request, { toolNames, note: formatInstruction(request.format) }),
    functions,
    mustCall: functions !== null && requiresCall(request.toolChoice),
    callsMax: request.parallelToolCalls ? callsMax : 1,
    format: functions === null ? format : { type: 'text' },
    stopSequences: request.sampling.stopSequences,
    sampling: encodeSampling(request, seed),
  }
}

/** Where one tool must be called, only that tool is declared. */
function encodeFunctions(
  { toolChoice }: GenerationRequest,
  toolNames: ToolNames,
): Readonly<Record<string, ChatFunction>> | null {
  const tools = toolNames.tools.filter(
    (tool) => toolChoice.type !== 'tool' || isSameTool(tool, toolChoice),
  )
  if (tools.length === 0) return null
  return Object.fromEntries(
    tools.map((tool) => {
      const description = describeTool(tool)
      const hasNoParameters = tool.type === 'function' && tool.parameters === null
      return [
        toolNames.wireName(tool),
        {
          ...(description === null ? {} : { description }),
          ...(hasNoParameters ? {} : { params: { type: 'object', ...parametersOf(tool) } }),
        },
      ]
    }),
  )
}

function encodeFormat(format: OutputFormat): OutputConstraint {
  return format.type === 'json-schema'
    ? { type: 'json-schema', schema: { ...format.schema } }
    : format
}

/** A grammar constrains the output, but does not tell the model what is expected. */
function formatInstruction(format: OutputFormat): string | null {
  switch (format.type) {
    case 'text':
      return null
    case 'json-object':
      return 'Answer with one JSON object and nothing else.'
    case 'json-schema': {
      const described = format.description === null ? '' : ` (${format.description})`
      const schema = JSON.stringify(format.schema)
      return `Answer with JSON and nothing else, according to this JSON Schema${described}: ${schema}`
    }
  }
}

function encodeSampling({ sampling, reasoning }: GenerationRequest, seed: number): PromptSampling {
  const thinkingTokens = reasoning.effort === 'none' ? 0 : reasoning.budgetTokens
  return {
    temperature: sampling.temperature ?? temperatureDefault,
    seed,
    ...optionalField('topP', sampling.topP),
    ...optionalField('topK', sampling.topK),
    ...optionalField('presencePenalty', sampling.presencePenalty),
    ...optionalField('frequencyPenalty', sampling.frequencyPenalty),
    ...optionalField('maxTokens', sampling.maxOutputTokens),
    ...(thinkingTokens === undefined ? {} : { thinkingTokens }),
  }
}

function optionalField<Name extends string>(
  name: Name,
  value: Sampling['topP'],
): { [name in Name]?: number } {
  const fields: { [name in Name]?: number } = {}
  if (value !== null) fields[name] = value
  return fields
}
