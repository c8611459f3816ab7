import type { GenerationRequest, OutputFormat, Sampling } from '#inference/request.ts'
import { isSameTool } from '#inference/tool-choice.ts'
import { describeTool, parametersOf, type ToolNames } from '#inference/tool-names.ts'
import { encodeHistory } from './history.ts'
import type { AnswerForm, ChatFunction, Prompt, PromptSampling } from './wire.ts'

/** What llama.cpp itself takes where nobody says anything. */
const temperatureDefault = 0.8
/** More calls in one turn than any model makes on purpose. */
const callsMax = 64

/**
 * A request as a model on this machine is told it. `seed` decides what chance decides.
 *
 * The package takes either functions or a form of the answer, so next to tools the form is asked for
 * in words; whoever demanded it checks it.
 */
export function encodePrompt(
  request: GenerationRequest,
  { toolNames, seed }: { toolNames: ToolNames; seed: number },
): Prompt {
  const functions = encodeFunctions(request, toolNames)
  const form = encodeForm(request.format)
  return {
    history: encodeHistory(request, { toolNames, note: noteOf(request.format) }),
    functions,
    mustCall: functions !== null && demandsCall(request),
    callsMax: request.parallelToolCalls ? callsMax : 1,
    form: functions === null ? form : { type: 'text' },
    stopTexts: request.sampling.stopSequences,
    sampling: encodeSampling(request, seed),
  }
}

/** Where one tool must be called, no other is offered. */
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
      const takesNothing = tool.type === 'function' && tool.parameters === null
      return [
        toolNames.wireName(tool),
        {
          ...(description === null ? {} : { description }),
          ...(takesNothing ? {} : { params: { type: 'object', ...parametersOf(tool) } }),
        },
      ]
    }),
  )
}

function demandsCall({ toolChoice }: GenerationRequest): boolean {
  const { type } = toolChoice
  if (type === 'tool' || type === 'required') return true
  return type === 'allowed' && toolChoice.mode === 'required'
}

function encodeForm(format: OutputFormat): AnswerForm {
  return format.type === 'json-schema'
    ? { type: 'json-schema', schema: { ...format.schema } }
    : format
}

/** A grammar holds the model to a form, and does not tell it what is meant by it. */
function noteOf(format: OutputFormat): string | null {
  switch (format.type) {
    case 'text':
      return null
    case 'json-object':
      return 'Answer with one JSON object and nothing else.'
    case 'json-schema': {
      const described = format.description === null ? '' : ` (${format.description})`
      const schema = JSON.stringify(format.schema)
      return `Answer with JSON and nothing else, in the form of this JSON Schema${described}: ${schema}`
    }
  }
}

function encodeSampling({ sampling, reasoning }: GenerationRequest, seed: number): PromptSampling {
  const thoughtTokens = reasoning.effort === 'none' ? 0 : reasoning.budgetTokens
  return {
    temperature: sampling.temperature ?? temperatureDefault,
    seed,
    ...given('topP', sampling.topP),
    ...given('topK', sampling.topK),
    ...given('presencePenalty', sampling.presencePenalty),
    ...given('frequencyPenalty', sampling.frequencyPenalty),
    ...given('maxTokens', sampling.maxOutputTokens),
    ...(thoughtTokens === undefined ? {} : { thoughtTokens }),
  }
}

function given<Name extends string>(
  name: Name,
  value: Sampling['topP'],
): { [name in Name]?: number } {
  const fields: { [name in Name]?: number } = {}
  if (value !== null) fields[name] = value
  return fields
}
