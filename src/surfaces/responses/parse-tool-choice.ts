import { quote } from '#api/read-object.ts'
import type { Tool, ToolChoice, ToolName } from '#inference/request.ts'
import type { JsonObject } from '#lib/json.ts'
import type { ParsedTools } from './parse-tools.ts'
import { invalidField, readObject, readType } from './read-object.ts'
import type { CreateResponse } from './schema/request.ts'
import { allowedTools, namedToolChoice } from './schema/tools.ts'

/** Parses `tool_choice`, which can only name tools of the request. */
export function parseToolChoice(
  choice: CreateResponse['tool_choice'],
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
    // Its name for the model is not known yet.
    case 'mcp':
      return { type: 'required' }
    case 'file_search':
      if (given.fileSearch === null) throw unknownTool(type)
      return { type: 'required' }
    default:
      throw invalidField(
        'tool_choice',
        `names a tool of type ${quote(type)}, which is not supported`,
      )
  }
}

/** The choice as sent, with the mode that applied. */
export function echoToolChoice(choice: string | JsonObject | undefined): string | JsonObject {
  if (choice === undefined) return 'auto'
  const isAllowed = typeof choice === 'object' && choice['type'] === 'allowed_tools'
  return isAllowed ? { ...choice, mode: choice['mode'] ?? 'auto' } : choice
}

function parseMode(mode: 'none' | 'auto' | 'required', given: ParsedTools): ToolChoice {
  if (mode === 'required' && given.tools.length === 0 && !hasHosted(given)) throw nothingToCall()
  return { type: mode }
}

function parseAllowed(choice: JsonObject, given: ParsedTools): ToolChoice {
  const { mode = 'auto', tools } = readObject(allowedTools, choice, 'tool_choice')
  const allowed: ToolName[] = []
  let isHosted = false
  for (const [index, entry] of tools.entries()) {
    const path = `tool_choice.tools[${index}]`
    const type = readType(entry, path)
    const isListed = type === 'function' || type === 'custom' || type === 'namespace'
    if (isListed) allowed.push(...findTools(entry, given, path).map(nameOf))
    else if (type === 'mcp' || (type === 'file_search' && given.fileSearch !== null))
      isHosted = true
    else if (!given.ignored.includes(type)) throw unknownTool(type)
  }
  if (allowed.length > 0 || isHosted) return { type: 'allowed', mode, tools: allowed }
  if (mode === 'required') throw nothingToCall()
  return { type: 'none' }
}

/**
 * The tools that an entry names: all tools of a namespace, or those with a name. Without a namespace,
 * a top-level tool takes precedence over tools of the same name inside namespaces.
 */
function findTools(entry: unknown, given: ParsedTools, path: string): [Tool, ...Tool[]] {
  const { name, namespace } = readObject(namedToolChoice, entry, path)
  const type = readType(entry, path)
  const candidates = given.tools.filter((tool) =>
    type === 'namespace' ? tool.namespace === name : tool.type === type && tool.name === name,
  )
  const exact = candidates.filter((tool) => tool.namespace === namespace)
  const [first, ...others] = exact.length > 0 || namespace !== undefined ? exact : candidates
  if (first === undefined) throw unknownTool(name)
  return [first, ...others]
}

function hasHosted({ mcp, fileSearch }: ParsedTools): boolean {
  return mcp.length > 0 || fileSearch !== null
}

function nameOf({ name, namespace }: Tool): ToolName {
  return namespace === undefined ? { name } : { name, namespace }
}

function unknownTool(name: string) {
  return invalidField('tool_choice', `names the tool ${quote(name)}, which is not in tools`)
}

function nothingToCall() {
  return invalidField('tool_choice', 'requires a call, but the request has no callable tool')
}
