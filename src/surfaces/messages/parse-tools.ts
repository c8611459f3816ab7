import { quote } from '#api/read-object.ts'
import type { FunctionTool, ToolChoice } from '#inference/request.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { invalidField, readObject, readType } from './read-object.ts'
import { customTool, forcedToolChoice, toolChoiceFields } from './schema/request.ts'

export type ParsedTools = {
  /** The tools for the model, in the order of the request. */
  tools: readonly FunctionTool[]
  /** Tools that only their vendor can run, and that are ignored. */
  ignored: readonly { type: string; name: string | null }[]
}

type ParseToolsOptions = {
  toolsMax: number
  /** The conversation, which can reveal deferred tools. */
  messages: readonly unknown[]
  /** The tool that must be called. */
  forced: string | null
}

/**
 * Parses `tools`. A typed tool without a schema is ignored, never an error. A deferred tool is hidden
 * until the conversation refers to it. If the request has a tool search, which only the vendor can run,
 * no deferred tool is hidden.
 */
export function parseTools(values: readonly unknown[], options: ParseToolsOptions): ParsedTools {
  const { toolsMax } = options
  if (values.length > toolsMax) {
    throw invalidField('tools', `must not have more than ${toolsMax} tools`)
  }
  const tools: FunctionTool[] = []
  const deferred = new Set<string>()
  const ignored: ParsedTools['ignored'][number][] = []
  const seen = new Set<string>()
  for (const [index, value] of values.entries()) {
    const path = `tools.${index}`
    const type = vendorType(value)
    if (type !== null) {
      ignored.push({ type, name: nameOf(value) })
      continue
    }
    const { isDeferred, ...tool } = parseTool(value, path)
    if (seen.has(tool.name)) throw invalidField(`${path}.name`, `${quote(tool.name)} is used twice`)
    seen.add(tool.name)
    tools.push(tool)
    if (isDeferred) deferred.add(tool.name)
  }
  const hasVendorSearch = ignored.some(({ type }) => type.startsWith('tool_search_tool'))
  if (deferred.size === 0 || hasVendorSearch) return { tools, ignored }
  const named = findNamedTools(options.messages)
  const isVisible = ({ name }: FunctionTool) =>
    !deferred.has(name) || named.has(name) || name === options.forced
  return { tools: tools.filter(isVisible), ignored }
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

function parseTool(value: unknown, path: string): FunctionTool & { isDeferred: boolean } {
  const tool = readObject(customTool, value, path)
  return {
    type: 'function',
    name: tool.name,
    description: tool.description ?? null,
    parameters: parseSchema(tool.input_schema, `${path}.input_schema`),
    // Some upstreams enforce schemas by default, and refuse those that do not support it.
    strict: tool.strict ?? false,
    isDeferred: tool.defer_loading ?? false,
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

export type ParsedToolChoice = { toolChoice: ToolChoice; parallelToolCalls: boolean }

/** Parses `tool_choice`, which can only force tools that the model gets. */
export function parseToolChoice(
  choice: JsonObject | undefined,
  given: ParsedTools,
): ParsedToolChoice {
  if (choice === undefined) return { toolChoice: { type: 'auto' }, parallelToolCalls: true }
  const { disable_parallel_tool_use: single = false } = readObject(
    toolChoiceFields,
    choice,
    'tool_choice',
  )
  const parallelToolCalls = !single
  const type = readType(choice, 'tool_choice')
  switch (type) {
    case 'auto':
    case 'none':
      return { toolChoice: { type }, parallelToolCalls }
    case 'any':
      if (given.tools.length === 0) throw nothingToCall(given)
      return { toolChoice: { type: 'required' }, parallelToolCalls }
    case 'tool': {
      const { name } = readObject(forcedToolChoice, choice, 'tool_choice')
      requireTool(name, given)
      return { toolChoice: { type: 'tool', form: 'function', name }, parallelToolCalls }
    }
    default:
      throw invalidField('tool_choice.type', 'must be one of auto, any, tool, none')
  }
}

/** The name of the forced tool, which is needed before `parseToolChoice`. */
export function forcedTool(choice: JsonObject | undefined): string | null {
  return nameOf(choice)
}

function requireTool(name: string, { tools, ignored }: ParsedTools): void {
  if (tools.some((tool) => tool.name === name)) return
  const vendorTool = ignored.find((tool) => tool.name === name)
  const why =
    vendorTool === undefined
      ? 'which is not in tools'
      : `whose type ${quote(vendorTool.type)} is not supported`
  throw invalidField('tool_choice.name', `is ${quote(name)}, ${why}`)
}

function nothingToCall({ ignored }: ParsedTools) {
  const [vendorTool] = ignored
  const why =
    vendorTool === undefined ? '' : `; tools of type ${quote(vendorTool.type)} are not supported`
  return invalidField('tool_choice', `requires a call, but the request has no callable tool${why}`)
}
