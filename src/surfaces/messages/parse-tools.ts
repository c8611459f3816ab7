import { quote } from '#api/read-object.ts'
import { isWebSearchType, type WebSearchTool } from '#hosted-tools/web-search/request.ts'
import type { FunctionTool, NativeTool, ToolChoice } from '#inference/request.ts'
import type { HostedChoice } from '#inference/tool-loop/own-function.ts'
import type { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import { clientFunction } from './client-tools.ts'
import type { Toolset } from './parse-mcp.ts'
import { parseWebSearchTool } from './parse-web-search.ts'
import { invalidField, orRefusal, readObject, readType, unknownPart } from './read-object.ts'
import { customTool, forcedToolChoice, toolChoiceFields } from './schema/request.ts'
import { readToolChanges } from './tool-changes.ts'

export type ParsedTools = {
  /** The tools for the model, in the order of the request. */
  tools: readonly FunctionTool[]
  /** Tools that only upstreams of this protocol run, each with its path. */
  native: readonly (NativeTool & { path: string; name: string | null })[]
  /** Configurations of the tools of MCP servers. */
  toolsets: readonly Toolset[]
  /** Null if the request has no web search, or leaves it to the upstream. */
  webSearch: (WebSearchTool & { name: string | null }) | null
}

const noTools: ParsedTools = { tools: [], native: [], toolsets: [], webSearch: null }

type ParseToolsOptions = {
  toolsMax: number
  /** The conversation, which can reveal deferred tools. */
  messages: readonly unknown[]
  /** The tool that must be called. */
  forced: string | null
  /** Whether the gateway runs web searches; by default they are left to the upstream. */
  hostsWebSearch: boolean
}

/**
 * Parses `tools`. Typed tools that clients run become functions; others are left to upstreams of this
 * protocol, except a search for deferred tools: without one, the model gets all tools. A deferred tool
 * is hidden until the conversation refers to it, unless the request has such a search. Tools that the
 * conversation adds or removes are those at its end.
 */
export function parseTools(values: readonly unknown[], options: ParseToolsOptions): ParsedTools {
  const { toolsMax, messages } = options
  const changes = readToolChanges(messages)
  if (values.length + changes.length === 0) return noTools
  const definitions = changes.flatMap(({ definition }) => definition ?? [])
  if (values.length + definitions.length > toolsMax) {
    throw invalidField('tools', `must not have more than ${toolsMax} tools`)
  }
  const tools = new Map<string, FunctionTool>()
  const deferred = new Set<string>()
  const native: ParsedTools['native'][number][] = []
  const toolsets: Toolset[] = []
  let webSearch: ParsedTools['webSearch'] = null
  let hasVendorSearch = false
  const entries = values.map((value, index) => ({ value, path: `tools.${index}` }))
  for (const { value, path } of [...entries, ...definitions]) {
    const type = vendorType(value)
    if (type?.startsWith('tool_search_tool')) {
      hasVendorSearch = true
      continue
    }
    if (type === 'mcp_toolset') {
      toolsets.push({ value: asRecord(value), path })
      continue
    }
    if (options.hostsWebSearch && type !== null && isWebSearchType(type)) {
      if (webSearch !== null) throw invalidField(path, 'is a second web search')
      webSearch = { ...parseWebSearchTool(value, path), name: nameOf(value) }
      continue
    }
    const clientTool = type === null ? null : clientFunction(type, nameOf(value))
    if (type !== null && clientTool === null) {
      native.push({ type, name: nameOf(value), path, value: asRecord(value) })
      continue
    }
    const isDeferred = isRecord(value) && value['defer_loading'] === true
    const tool = clientTool ?? parseTool(value, path)
    // A definition in the conversation replaces an earlier one.
    if (tools.has(tool.name) && path.startsWith('tools.')) {
      throw invalidField(`${path}.name`, `${quote(tool.name)} is used twice`)
    }
    tools.set(tool.name, tool)
    if (isDeferred) deferred.add(tool.name)
  }
  /** By name; the last change counts. */
  const changed = new Map(changes.map(({ kind, name }) => [name, kind]))
  const isPresent = (name: string | null) => changed.get(name ?? '') !== 'removal'
  const present = {
    tools: [...tools.values()].filter(({ name }) => isPresent(name)),
    native: native.filter(({ name }) => isPresent(name)),
    toolsets,
    webSearch: webSearch !== null && isPresent(webSearch.name) ? webSearch : null,
  }
  if (deferred.size === 0 || hasVendorSearch) return present
  const named = findNamedTools(messages)
  const isVisible = ({ name }: FunctionTool) =>
    !deferred.has(name) || named.has(name) || changed.has(name) || name === options.forced
  return { ...present, tools: present.tools.filter(isVisible) }
}

/** The type of a tool without a schema of its own; null for a custom tool. */
function vendorType(value: unknown): string | null {
  if (!isRecord(value)) return null
  const { type, input_schema: schema } = value
  const isVendorTool = typeof type === 'string' && type !== 'custom' && !isRecord(schema)
  return isVendorTool ? type : null
}

function nameOf(value: unknown): string | null {
  const name = isRecord(value) ? value['name'] : null
  return typeof name === 'string' ? name : null
}

function parseTool(value: unknown, path: string): FunctionTool {
  const tool = readObject(customTool, value, path)
  return {
    type: 'function',
    name: tool.name,
    description: tool.description ?? null,
    parameters: parseSchema(tool.input_schema, `${path}.input_schema`),
    // Some upstreams enforce schemas by default, and refuse those that do not support it.
    strict: tool.strict ?? false,
  }
}

/** Servers refuse an object schema without properties, which the protocol allows. */
function parseSchema(schema: JsonObject, path: string): JsonObject {
  const { type = 'object' } = schema
  if (type !== 'object') throw invalidField(`${path}.type`, 'must be "object"')
  const isComplete = 'type' in schema && 'properties' in schema
  return isComplete ? schema : { type: 'object', properties: {}, ...schema }
}

/** The names of tools that a conversation calls or refers to. Does not validate the blocks. */
function findNamedTools(messages: readonly unknown[]): Set<string> {
  const names = new Set<string>()
  const visit = (block: unknown) => {
    if (!isRecord(block)) return
    const name = block['type'] === 'tool_use' ? block['name'] : block['tool_name']
    if (typeof name === 'string') names.add(name)
    const { content } = block
    visitAll(content)
    if (isRecord(content)) visitAll(content['tool_references'])
  }
  const visitAll = (blocks: unknown) => {
    if (Array.isArray(blocks)) blocks.forEach(visit)
  }
  visitAll(messages)
  return names
}

export type ParsedToolChoice = {
  toolChoice: ToolChoice
  parallelToolCalls: boolean
  webSearch: HostedChoice
}

/**
 * Parses `tool_choice`. A choice that only native tools can meet, or of an unknown type, adds to
 * `refusals`.
 */
export function parseToolChoice(
  choice: JsonObject | undefined,
  given: ParsedTools,
  refusals: AppError[],
): ParsedToolChoice {
  if (choice === undefined) {
    return { toolChoice: { type: 'auto' }, parallelToolCalls: true, webSearch: 'any' }
  }
  const { disable_parallel_tool_use: single = false } = readObject(
    toolChoiceFields,
    choice,
    'tool_choice',
  )
  const parallelToolCalls = !single
  const type = readType(choice, 'tool_choice')
  const toolChoice = orRefusal<ToolChoice>(refusals, { type: 'native', value: choice }, () =>
    parseChoice(type, choice, given),
  )
  return { toolChoice, parallelToolCalls, webSearch: searchChoice(type, choice, given) }
}

function searchChoice(type: string, choice: JsonObject, { webSearch }: ParsedTools): HostedChoice {
  if (type === 'none') return 'forbidden'
  const isForced = type === 'tool' && webSearch !== null && nameOf(choice) === webSearch.name
  return isForced ? 'forced' : 'any'
}

function parseChoice(type: string, choice: JsonObject, given: ParsedTools): ToolChoice {
  switch (type) {
    case 'auto':
    case 'none':
      return { type }
    case 'any':
      if (given.tools.length + given.toolsets.length === 0 && given.webSearch === null) {
        throw nothingToCall(given)
      }
      return { type: 'required' }
    case 'tool': {
      const { name } = readObject(forcedToolChoice, choice, 'tool_choice')
      if (given.tools.some((tool) => tool.name === name)) {
        return { type: 'tool', form: 'function', name }
      }
      // Its name for the model is not known yet.
      if (given.webSearch?.name === name) return { type: 'required' }
      const tool = given.native.find((native) => native.name === name)
      const why =
        tool === undefined
          ? 'which is not in tools'
          : `whose type ${quote(tool.type)} is not supported`
      // The tools of a native toolset are known to its vendor alone.
      const isKnown = given.native.length + given.toolsets.length === 0
      const refuse = isKnown ? invalidField : unknownPart
      throw refuse('tool_choice.name', `is ${quote(name)}, ${why}`)
    }
    default:
      throw unknownPart('tool_choice.type', 'must be one of auto, any, tool, none')
  }
}

/** The name of the forced tool, which is needed before `parseToolChoice`. */
export function forcedTool(choice: JsonObject | undefined): string | null {
  return nameOf(choice)
}

function nothingToCall({ native: [tool] }: ParsedTools) {
  const predicate = 'requires a call, but the request has no callable tool'
  if (tool === undefined) return invalidField('tool_choice', predicate)
  const why = `tools of type ${quote(tool.type)} are not supported`
  return unknownPart('tool_choice', `${predicate}; ${why}`)
}
