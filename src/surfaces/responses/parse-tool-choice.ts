import type { Tool, ToolChoice, ToolName } from '#inference/request.ts'
import type { JsonObject } from '#lib/json.ts'
import { quote } from '#surfaces/read-object.ts'
import type { ParsedTools } from './parse-tools.ts'
import { badField, createReader, readType } from './read-object.ts'
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
      const [tool] = findTools(choice, given, 'tool_choice')
      return { type: 'tool', ...nameOf(tool), form: tool.type }
    }
    case 'allowed_tools':
      return parseAllowed(choice, given)
    // Under which name a model is offered it is known later.
    case 'mcp':
      return { type: 'required' }
    case 'file_search':
      if (given.fileSearch === null) throw notGiven(type)
      return { type: 'required' }
    default:
      throw badField('tool_choice', `asks for a tool of type ${quote(type)}, which is not offered`)
  }
}

/** What the Response object says of the choice: as it was sent, with the mode that held. */
export function echoToolChoice(choice: string | JsonObject | undefined): string | JsonObject {
  if (choice === undefined) return 'auto'
  const isAllowed = typeof choice === 'object' && choice['type'] === 'allowed_tools'
  return isAllowed ? { ...choice, mode: choice['mode'] ?? 'auto' } : choice
}

function parseMode(mode: string, given: ParsedTools): ToolChoice {
  switch (mode) {
    case 'none':
    case 'auto':
      return { type: mode }
    case 'required':
      if (given.tools.length === 0 && !hasHosted(given)) throw nothingToCall()
      return { type: 'required' }
    default:
      throw badField('tool_choice', 'must be none, auto, required or an object that names a tool')
  }
}

function parseAllowed(choice: JsonObject, given: ParsedTools): ToolChoice {
  const { mode = 'auto', tools } = readAllowed(choice, 'tool_choice')
  const allowed: ToolName[] = []
  let isHosted = false
  for (const [index, entry] of tools.entries()) {
    const path = `tool_choice.tools[${index}]`
    const type = readType(entry, path)
    const isListed = type === 'function' || type === 'custom' || type === 'namespace'
    if (isListed) allowed.push(...findTools(entry, given, path).map(nameOf))
    else if (type === 'mcp' || (type === 'file_search' && given.fileSearch !== null))
      isHosted = true
    else if (!given.ignored.includes(type)) throw notGiven(type)
  }
  if (allowed.length > 0 || isHosted) return { type: 'allowed', mode, tools: allowed }
  if (mode === 'required') throw nothingToCall()
  return { type: 'none' }
}

/**
 * The tools that are meant: all of a namespace, or those of a name. Where no namespace is said, a
 * tool without one goes before those that bear the same name inside of one.
 */
function findTools(entry: unknown, given: ParsedTools, path: string): [Tool, ...Tool[]] {
  const { name, namespace } = readByName(entry, path)
  const type = readType(entry, path)
  const candidates = given.tools.filter((tool) =>
    type === 'namespace' ? tool.namespace === name : tool.type === type && tool.name === name,
  )
  const exact = candidates.filter((tool) => tool.namespace === namespace)
  const [first, ...others] = exact.length > 0 || namespace !== undefined ? exact : candidates
  if (first === undefined) throw notGiven(name)
  return [first, ...others]
}

function hasHosted({ mcp, fileSearch }: ParsedTools): boolean {
  return mcp.length > 0 || fileSearch !== null
}

function nameOf({ name, namespace }: Tool): ToolName {
  return namespace === undefined ? { name } : { name, namespace }
}

function notGiven(name: string) {
  return badField('tool_choice', `names the tool ${quote(name)}, which is not in tools`)
}

function nothingToCall() {
  return badField('tool_choice', 'requires a call, but there is no tool that can be called')
}
