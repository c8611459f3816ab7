import { quote } from '#api/read-object.ts'
import type { McpChoice, ServerTools } from '#hosted-tools/mcp/request.ts'
import { isWebSearchType } from '#hosted-tools/web-search/request.ts'
import type { Tool, ToolChoice, ToolName } from '#inference/request.ts'
import type { HostedChoice } from '#inference/tool-loop/own-function.ts'
import type { AppError } from '#lib/errors.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'
import type { ParsedTools } from './parse-tools.ts'
import { invalidField, readObject, readType } from './read-object.ts'
import type { CreateResponse } from './schema/request.ts'
import { allowedTools, mcpToolChoice, namedToolChoice } from './schema/tools.ts'

/** What `tool_choice` says about the tools for the model, about MCP servers and about searches. */
type ParsedToolChoice = {
  model: ToolChoice
  mcp: McpChoice
  fileSearch: HostedChoice
  webSearch: HostedChoice
  /** Why the choice cannot be kept without the native tools. */
  refusal?: AppError
}

const anyHosted = { mcp: { type: 'any' }, fileSearch: 'any', webSearch: 'any' } as const

/** Parses `tool_choice`, which can only name tools of the request. */
export function parseToolChoice(
  choice: CreateResponse['tool_choice'],
  given: ParsedTools,
): ParsedToolChoice {
  if (choice === undefined) return { model: { type: 'auto' }, ...anyHosted }
  if (typeof choice === 'string') return parseMode(choice, given)
  const type = readType(choice, 'tool_choice')
  switch (type) {
    case 'function':
    case 'custom': {
      const [tool] = findTools(choice, given, 'tool_choice')
      return { model: { type: 'tool', ...nameOf(tool), form: tool.type }, ...anyHosted }
    }
    case 'allowed_tools':
      return parseAllowed(choice, given)
    case 'mcp': {
      const forced = findServer(choice, given, 'tool_choice')
      // Its name for the model is not known yet.
      return { ...anyHosted, model: { type: 'required' }, mcp: { type: 'forced', ...forced } }
    }
    case 'file_search':
      if (given.fileSearch === null) throw unknownTool(type)
      return { ...anyHosted, model: { type: 'required' }, fileSearch: 'forced' }
    default: {
      if (given.webSearch !== null && isWebSearchType(type)) {
        return { ...anyHosted, model: { type: 'required' }, webSearch: 'forced' }
      }
      const tool = given.native.find((native) => native.type === type)
      if (tool === undefined) throw unknownTool(type)
      const refusal = invalidField('tool_choice', `requires the tool ${quote(type)}`)
      return { ...anyHosted, model: { type: 'native', value: choice }, refusal }
    }
  }
}

/** The choice as sent, with the mode that applied. */
export function echoToolChoice(choice: string | JsonObject | undefined): string | JsonObject {
  if (choice === undefined) return 'auto'
  const isAllowed = typeof choice === 'object' && choice['type'] === 'allowed_tools'
  return isAllowed ? { ...choice, mode: choice['mode'] ?? 'auto' } : choice
}

function parseMode(mode: 'none' | 'auto' | 'required', given: ParsedTools): ParsedToolChoice {
  const { tools, mcp, fileSearch, webSearch, native } = given
  const model = { type: mode }
  if (mode === 'none') {
    const mcp = { type: 'only', tools: [] } as const
    return { model, mcp, fileSearch: 'forbidden', webSearch: 'forbidden' }
  }
  const hasSearch = fileSearch !== null || webSearch !== null
  const isCallable = tools.length > 0 || mcp.length > 0 || hasSearch
  if (mode === 'auto' || isCallable) return { model, ...anyHosted }
  if (native.length === 0) throw nothingToCall()
  return { model, ...anyHosted, refusal: nothingToCall() }
}

function parseAllowed(choice: JsonObject, given: ParsedTools): ParsedToolChoice {
  const { mode = 'auto', tools } = readObject(allowedTools, choice, 'tool_choice')
  const allowed: ToolName[] = []
  const servers: ServerTools[] = []
  const native: JsonObject[] = []
  let fileSearch: HostedChoice = 'forbidden'
  let webSearch: HostedChoice = 'forbidden'
  for (const [index, entry] of tools.entries()) {
    const path = `tool_choice.tools[${index}]`
    const type = readType(entry, path)
    const isNamed = type === 'function' || type === 'custom' || type === 'namespace'
    if (isNamed) allowed.push(...findTools(entry, given, path).map(nameOf))
    else if (type === 'mcp') servers.push(findServer(entry, given, path))
    else if (type === 'file_search' && given.fileSearch !== null) fileSearch = 'listed'
    else if (isWebSearchType(type) && given.webSearch !== null) webSearch = 'listed'
    else if (given.native.some((tool) => tool.type === type)) native.push(asRecord(entry))
    else throw unknownTool(type)
  }
  const hosted = { mcp: { type: 'only', tools: servers }, fileSearch, webSearch } as const
  const model = { type: 'allowed', mode, tools: allowed } as const
  const hasSearch = fileSearch === 'listed' || webSearch === 'listed'
  const isCallable = allowed.length > 0 || servers.length > 0 || hasSearch
  if (native.length > 0) {
    const refusal = mode === 'required' && !isCallable ? { refusal: nothingToCall() } : {}
    return { model: { ...model, native }, ...hosted, ...refusal }
  }
  if (isCallable) return { model, ...hosted }
  if (mode === 'required') throw nothingToCall()
  return { model: { type: 'none' }, ...hosted }
}

function findServer(entry: unknown, given: ParsedTools, path: string): ServerTools {
  const { server_label: label, name = null } = readObject(mcpToolChoice, entry, path)
  if (given.mcp.some((tool) => tool.label === label)) return { label, name }
  throw invalidField('tool_choice', `names the server ${quote(label)}, which is not in tools`)
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

function nameOf({ name, namespace }: Tool): ToolName {
  return namespace === undefined ? { name } : { name, namespace }
}

function unknownTool(name: string) {
  return invalidField('tool_choice', `names the tool ${quote(name)}, which is not in tools`)
}

function nothingToCall() {
  return invalidField('tool_choice', 'requires a call, but the request has no callable tool')
}
