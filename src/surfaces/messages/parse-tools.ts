import type { FunctionTool } from '#inference/request.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { quote } from '#surfaces/read-object.ts'
import { findNamedTools } from './named-tools.ts'
import { badField, createReader } from './read-object.ts'
import { customTool } from './schema.ts'

const readTool = createReader(customTool)

export type ParsedTools = {
  /** What a model is offered, in the order of the request. */
  tools: readonly FunctionTool[]
  /** Those that are not offered here, because only their vendor knows what they are. */
  leftOut: readonly { type: string; name: string | null }[]
}

type Options = {
  toolsMax: number
  /** The conversation, which may make deferred tools known. */
  messages: readonly unknown[]
  /** The tool that must be called. */
  forced: string | null
}

/**
 * `tools` of a request. A typed tool without a schema is left out, never an error. A deferred tool
 * is hidden until the conversation names it; a search for such tools that would run at the vendor
 * cannot name any here, so all of them are offered then.
 */
export function parseTools(values: readonly unknown[], options: Options): ParsedTools {
  const { toolsMax } = options
  if (values.length > toolsMax) throw badField('tools', `must not hold more than ${toolsMax} tools`)
  const tools: FunctionTool[] = []
  const deferred = new Set<string>()
  const leftOut: ParsedTools['leftOut'][number][] = []
  const seen = new Set<string>()
  for (const [index, value] of values.entries()) {
    const path = `tools.${index}`
    const type = typeOfForeign(value)
    if (type !== null) {
      leftOut.push({ type, name: nameOf(value) })
      continue
    }
    const { isDeferred, ...tool } = parseTool(value, path)
    if (seen.has(tool.name)) throw badField(`${path}.name`, `is ${quote(tool.name)} a second time`)
    seen.add(tool.name)
    tools.push(tool)
    if (isDeferred) deferred.add(tool.name)
  }
  const isSearchedElsewhere = leftOut.some(({ type }) => type.startsWith('tool_search_tool'))
  if (deferred.size === 0 || isSearchedElsewhere) return { tools, leftOut }
  const named = findNamedTools(options.messages)
  const isOffered = ({ name }: FunctionTool) =>
    !deferred.has(name) || named.has(name) || name === options.forced
  return { tools: tools.filter(isOffered), leftOut }
}

/** The type of a tool that has no schema of its own; null where it is a custom tool. */
function typeOfForeign(value: unknown): string | null {
  if (!isRecord(value)) return null
  const { type, input_schema: schema } = value
  const isForeign = typeof type === 'string' && type !== 'custom' && !isRecord(schema)
  return isForeign ? type : null
}

function nameOf(value: unknown): string | null {
  const name = isRecord(value) ? value['name'] : null
  return typeof name === 'string' ? name : null
}

function parseTool(value: unknown, path: string): FunctionTool & { isDeferred: boolean } {
  const tool = readTool(value, path)
  return {
    type: 'function',
    name: tool.name,
    description: tool.description ?? null,
    parameters: parseSchema(tool.input_schema, `${path}.input_schema`),
    // Upstreams that hold a schema strictly do so unasked, and refuse those that are not made for it.
    strict: tool.strict ?? false,
    isDeferred: tool.defer_loading ?? false,
  }
}

/** Servers refuse an object without properties, which the protocol does not ask for. */
function parseSchema(schema: JsonObject, path: string): JsonObject {
  const { type = 'object' } = schema
  if (type !== 'object') throw badField(`${path}.type`, 'must be "object"')
  const hasAll = 'type' in schema && 'properties' in schema
  return hasAll ? schema : { type: 'object', properties: {}, ...schema }
}
