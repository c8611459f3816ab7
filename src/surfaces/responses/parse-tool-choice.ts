import type { Tool, ToolChoice } from '#inference/request.ts'
import type { JsonObject } from '#lib/json.ts'
import type { ParsedTools } from './parse-tools.ts'
import { badField, createReader, quote, readType } from './read-object.ts'
import { allowedTools, toolChoiceByName } from './schema.ts'

const readByName = createReader(toolChoiceByName)
const readAllowed = createReader(allowedTools)

/** `tool_choice` of a request; it can only point at tools that the request gives. */
export function parseToolChoice(
  choice: string | JsonObject | undefined,
  given: ParsedTools,
): ToolChoice {
  if (choice === undefined) return { type: 'auto' }
  if (typeof choice === 'string') return parseMode(choice, given)
  const type = readType(choice, 'tool_choice')
  switch (type) {
    case 'function':
    case 'custom': {
      const { name, namespace, type: form } = findTool(choice, given, 'tool_choice')
      return { type: 'tool', name, ...(namespace === undefined ? {} : { namespace }), form }
    }
    case 'allowed_tools':
      return parseAllowed(choice, given)
    default:
      throw badField('tool_choice', `asks for a tool of type ${quote(type)}, which is not offered`)
  }
}

function parseMode(mode: string, given: ParsedTools): ToolChoice {
  switch (mode) {
    case 'none':
    case 'auto':
      return { type: mode }
    case 'required':
      if (given.tools.length === 0) throw nothingToCall()
      return { type: 'required' }
    default:
      throw badField('tool_choice', 'must be none, auto, required or an object that names a tool')
  }
}

function parseAllowed(choice: JsonObject, given: ParsedTools): ToolChoice {
  const { mode = 'auto', tools } = readAllowed(choice, 'tool_choice')
  const names: string[] = []
  for (const [index, entry] of tools.entries()) {
    const path = `tool_choice.tools[${index}]`
    const type = readType(entry, path)
    if (type === 'function' || type === 'custom') names.push(findTool(entry, given, path).name)
    else if (!given.ignored.includes(type)) throw notGiven(type)
  }
  if (names.length > 0) return { type: 'allowed', mode, names }
  if (mode === 'required') throw nothingToCall()
  return { type: 'none' }
}

/** A tool without a namespace goes before one of the same name inside of a namespace. */
function findTool(entry: unknown, given: ParsedTools, path: string): Tool {
  const { name, namespace } = readByName(entry, path)
  const type = readType(entry, path)
  const sameName = given.tools.filter((tool) => tool.type === type && tool.name === name)
  const found = sameName.find((tool) => tool.namespace === namespace)
  const inNamespace = namespace === undefined ? sameName[0] : undefined
  const tool = found ?? inNamespace
  if (tool === undefined) throw notGiven(name)
  return tool
}

function notGiven(name: string) {
  return badField('tool_choice', `names the tool ${quote(name)}, which is not in tools`)
}

function nothingToCall() {
  return badField('tool_choice', 'requires a call, but there is no tool that can be called')
}
