import type { ToolChoice } from '#inference/request.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { quote } from '#surfaces/read-object.ts'
import type { ParsedTools } from './parse-tools.ts'
import { badField, createReader, readType } from './read-object.ts'
import { toolChoiceFields } from './schema.ts'

const readFields = createReader(toolChoiceFields)

export type ParsedToolChoice = { toolChoice: ToolChoice; parallelToolCalls: boolean }

/** `tool_choice` of a request; it can only demand tools that are offered. */
export function parseToolChoice(
  choice: JsonObject | undefined,
  given: ParsedTools,
): ParsedToolChoice {
  if (choice === undefined) return { toolChoice: { type: 'auto' }, parallelToolCalls: true }
  const { name, disable_parallel_tool_use: single = false } = readFields(choice, 'tool_choice')
  const parallelToolCalls = !single
  const type = readType(choice, 'tool_choice')
  switch (type) {
    case 'auto':
    case 'none':
      return { toolChoice: { type }, parallelToolCalls }
    case 'any':
      if (given.tools.length === 0) throw nothingToCall(given)
      return { toolChoice: { type: 'required' }, parallelToolCalls }
    case 'tool':
      if (name === undefined) throw badField('tool_choice.name', 'is required')
      checkName(name, given)
      return { toolChoice: { type: 'tool', form: 'function', name }, parallelToolCalls }
    default:
      throw badField('tool_choice.type', 'must be one of auto, any, tool, none')
  }
}

/** The tool that a choice forces, read before the tools are. */
export function forcedTool(choice: JsonObject | undefined): string | null {
  const name = isRecord(choice) ? choice['name'] : null
  return typeof name === 'string' ? name : null
}

function checkName(name: string, { tools, leftOut }: ParsedTools): void {
  if (tools.some((tool) => tool.name === name)) return
  const foreign = leftOut.find((tool) => tool.name === name)
  const why =
    foreign === undefined
      ? 'which is not in tools'
      : `which is of type ${quote(foreign.type)}; such tools are not offered here`
  throw badField('tool_choice.name', `is ${quote(name)}, ${why}`)
}

function nothingToCall({ leftOut }: ParsedTools) {
  const [foreign] = leftOut
  const why =
    foreign === undefined ? '' : `; tools of type ${quote(foreign.type)} are not offered here`
  return badField('tool_choice', `demands a call, but there is no tool that can be called${why}`)
}
