import { quote } from '#api/read-object.ts'
import type { McpToolRequest } from '#hosted-tools/mcp/request.ts'
import { isWebSearchType, type WebSearchTool } from '#hosted-tools/web-search/request.ts'
import type { CustomTool, FunctionTool, NativeTool, Tool } from '#inference/request.ts'
import { deepFreeze } from '#lib/frozen.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import type { FileSearchTool } from '#retrieval/file-search/request.ts'
import { parseFileSearchTool } from './parse-file-search.ts'
import { echoMcpTool, parseMcpTool } from './parse-mcp.ts'
import { parseWebSearchTool } from './parse-web-search.ts'
import { invalidField, readObject, readType } from './read-object.ts'
import type { ResponseEcho } from './schema/request.ts'
import { customTool, functionTool, grammarFormat, namespaceTool } from './schema/tools.ts'

export type ParsedTools = {
  /** The tools for the model, without their namespaces. */
  tools: readonly Tool[]
  /** MCP servers whose tools the model may call. */
  mcp: readonly McpToolRequest[]
  /** Null if the request has no file search. */
  fileSearch: FileSearchTool | null
  /** Null if the request has no web search, or leaves it to the upstream. */
  webSearch: WebSearchTool | null
  /** Tools that only upstreams of this protocol run, each with its path. */
  native: readonly (NativeTool & { path: string })[]
  echo: ResponseEcho['tools']
}

type Namespace = { namespace: string; namespaceDescription?: string }

const noTools: ParsedTools = deepFreeze({
  tools: [],
  mcp: [],
  fileSearch: null,
  webSearch: null,
  native: [],
  echo: [],
})

/**
 * Parses `tools`. Tools of other types, known or not, are left to upstreams of this protocol, also web
 * searches unless `hostsWebSearch`.
 */
export function parseTools(
  values: readonly unknown[],
  toolsMax: number,
  hostsWebSearch = false,
): ParsedTools {
  if (values.length === 0) return noTools
  const tools: Tool[] = []
  const mcp: McpToolRequest[] = []
  let fileSearch: FileSearchTool | null = null
  let webSearch: WebSearchTool | null = null
  const native: ParsedTools['native'][number][] = []
  const seen = new Set<string>()

  const addAll = (list: readonly unknown[], path: string, parent?: Namespace) => {
    for (const [index, value] of list.entries()) add(value, `${path}[${index}]`, parent)
  }
  const add = (value: unknown, path: string, parent?: Namespace) => {
    const type = readType(value, path)
    if (type === 'namespace' && parent === undefined) {
      const { name: namespace, description, tools: inner } = readObject(namespaceTool, value, path)
      addAll(inner, `${path}.tools`, {
        namespace,
        ...(description === undefined ? {} : { namespaceDescription: description }),
      })
    } else if (type === 'function' || type === 'custom') {
      const tool = type === 'function' ? parseFunction(value, path) : parseCustom(value, path)
      const key = `${parent?.namespace ?? ''}/${tool.name}`
      if (seen.has(key)) throw invalidField(`${path}.name`, `${quote(tool.name)} is used twice`)
      seen.add(key)
      tools.push({ ...tool, ...parent })
    } else if (type === 'mcp' && parent === undefined) {
      mcp.push(parseMcpTool(value, path))
    } else if (type === 'file_search' && parent === undefined) {
      if (fileSearch !== null) throw invalidField(`${path}.type`, '"file_search" is used twice')
      fileSearch = parseFileSearchTool(value, path)
    } else if (hostsWebSearch && parent === undefined && isWebSearchType(type)) {
      if (webSearch !== null)
        throw invalidField(`${path}.type`, `${quote(type)} is a second search`)
      webSearch = parseWebSearchTool(value, path)
    } else if (isRecord(value)) {
      native.push({ type, value, path, ...parent })
    }
    if (tools.length + native.length > toolsMax) throw tooMany(toolsMax)
  }

  if (values.length > toolsMax) throw tooMany(toolsMax)
  addAll(values, 'tools')
  refuseSameLabels(mcp)
  return {
    tools,
    mcp,
    fileSearch,
    webSearch,
    native,
    echo: values.filter(isRecord).map(echoTool),
  }
}

function refuseSameLabels(mcp: readonly McpToolRequest[]): void {
  for (const [index, { path, label }] of mcp.entries()) {
    const isFirst = mcp.findIndex((other) => other.label === label) === index
    if (!isFirst) throw invalidField(`${path}.server_label`, `${quote(label)} is used twice`)
  }
}

function tooMany(toolsMax: number) {
  return invalidField('tools', `must not have more than ${toolsMax} tools`)
}

function parseFunction(value: unknown, path: string): FunctionTool {
  if (isRecord(value) && value['name'] === undefined && isRecord(value['function'])) {
    throw invalidField(`${path}.name`, 'is required next to type, not inside function')
  }
  const {
    name,
    description = null,
    parameters = null,
    strict = null,
    async: isAsync = false,
  } = readObject(functionTool, value, path)
  const tool: FunctionTool = { type: 'function', name, description, parameters, strict }
  return isAsync ? { ...tool, async: true } : tool
}

function parseCustom(value: unknown, path: string): CustomTool {
  const {
    name,
    description = null,
    format,
    async: isAsync = false,
  } = readObject(customTool, value, path)
  const grammar = parseGrammar(format, `${path}.format`)
  return { type: 'custom', name, description, grammar, ...(isAsync ? { async: true } : {}) }
}

function parseGrammar(format: JsonObject | undefined, path: string): CustomTool['grammar'] {
  if (format === undefined) return null
  const type = readType(format, path)
  if (type === 'text') return null
  if (type !== 'grammar') throw invalidField(`${path}.type`, 'must be text or grammar')
  const { syntax, definition } = readObject(grammarFormat, format, path)
  return { syntax, definition }
}

/** Open Responses requires every field of a function tool, null if absent. */
function echoTool(sent: JsonObject): ResponseEcho['tools'][number] {
  const tool = { ...sent, type: String(sent['type']) }
  if (tool.type === 'mcp') return echoMcpTool(tool)
  if (tool.type !== 'function') return tool
  const { description = null, parameters = null, strict = null } = sent
  return { ...tool, description, parameters, strict }
}
