import type { McpToolRequest } from '#hosted-tools/mcp/request.ts'
import type { CustomTool, FunctionTool, Tool } from '#inference/request.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import type { FileSearchTool } from '#retrieval/file-search/request.ts'
import { quote } from '#surfaces/read-object.ts'
import { parseFileSearchTool } from './parse-file-search.ts'
import { echoMcpTool, parseMcpTool } from './parse-mcp.ts'
import { badField, createReader, readType } from './read-object.ts'
import { customTool, functionTool, grammarFormat, namespaceTool } from './schema.ts'

const readFunction = createReader(functionTool)
const readCustom = createReader(customTool)
const readGrammar = createReader(grammarFormat)
const readNamespace = createReader(namespaceTool)

export type ParsedTools = {
  /** What a model can be offered; namespaces are flattened. */
  tools: readonly Tool[]
  /** Remote servers whose tools the model is offered. */
  mcp: readonly McpToolRequest[]
  /** Null: no files are to be searched. */
  fileSearch: FileSearchTool | null
  /** The types of the tools that were left out, each once. */
  ignored: readonly string[]
  /** What the Response object says was sent. */
  echo: readonly JsonObject[]
}

type Place = { namespace: string; namespaceDescription?: string }

/** `tools` of a request. A tool of an unknown type is left out, never an error. */
export function parseTools(values: readonly unknown[], toolsMax: number): ParsedTools {
  const tools: Tool[] = []
  const mcp: McpToolRequest[] = []
  let fileSearch: FileSearchTool | null = null
  const ignored = new Set<string>()
  const seen = new Set<string>()

  const addAll = (list: readonly unknown[], path: string, place?: Place) => {
    for (const [index, value] of list.entries()) add(value, `${path}[${index}]`, place)
  }
  const add = (value: unknown, path: string, place?: Place) => {
    const type = readType(value, path)
    if (type === 'namespace' && place === undefined) {
      const { name: namespace, description, tools: inner } = readNamespace(value, path)
      const about = description === undefined ? {} : { namespaceDescription: description }
      addAll(inner, `${path}.tools`, { namespace, ...about })
    } else if (type === 'function' || type === 'custom') {
      const tool = type === 'function' ? parseFunction(value, path) : parseCustom(value, path)
      const key = `${place?.namespace ?? ''}/${tool.name}`
      if (seen.has(key)) throw badField(`${path}.name`, `is ${quote(tool.name)} a second time`)
      seen.add(key)
      tools.push({ ...tool, ...place })
    } else if (type === 'mcp' && place === undefined) {
      mcp.push(parseMcpTool(value, path))
    } else if (type === 'file_search' && place === undefined) {
      if (fileSearch !== null) throw badField(`${path}.type`, 'is "file_search" a second time')
      fileSearch = parseFileSearchTool(value, path)
    } else {
      ignored.add(type)
    }
    if (tools.length > toolsMax) throw tooMany(toolsMax)
  }

  if (values.length > toolsMax) throw tooMany(toolsMax)
  addAll(values, 'tools')
  refuseSameLabels(mcp)
  const echo = values.filter(isRecord).map(echoTool)
  return { tools, mcp, fileSearch, ignored: [...ignored], echo }
}

function refuseSameLabels(mcp: readonly McpToolRequest[]): void {
  for (const [index, { path, label }] of mcp.entries()) {
    const isFirst = mcp.findIndex((other) => other.label === label) === index
    if (!isFirst) throw badField(`${path}.server_label`, `is ${quote(label)} a second time`)
  }
}

function tooMany(toolsMax: number) {
  return badField('tools', `must not have more than ${toolsMax} tools`)
}

function parseFunction(value: unknown, path: string): FunctionTool {
  if (isRecord(value) && value['name'] === undefined && isRecord(value['function'])) {
    throw badField(`${path}.name`, 'is required beside type, not inside of function')
  }
  const { name, description = null, parameters = null, strict = null } = readFunction(value, path)
  return { type: 'function', name, description, parameters, strict }
}

function parseCustom(value: unknown, path: string): CustomTool {
  const { name, description = null, format } = readCustom(value, path)
  return { type: 'custom', name, description, grammar: parseGrammar(format, `${path}.format`) }
}

function parseGrammar(format: JsonObject | undefined, path: string): CustomTool['grammar'] {
  if (format === undefined) return null
  const type = readType(format, path)
  if (type === 'text') return null
  if (type !== 'grammar') throw badField(`${path}.type`, 'must be text or grammar')
  const { syntax, definition } = readGrammar(format, path)
  return { syntax, definition }
}

/** Open Responses wants every field of a function tool, null where it was not sent. */
function echoTool(tool: JsonObject): JsonObject {
  if (tool['type'] === 'mcp') return echoMcpTool(tool)
  if (tool['type'] !== 'function') return tool
  const { description = null, parameters = null, strict = null } = tool
  return { ...tool, description, parameters, strict }
}
