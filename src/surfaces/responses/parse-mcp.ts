import type {
  ApprovalRule,
  McpChoice,
  McpToolRequest,
  ServerTools,
  ToolFilter,
} from '#hosted-tools/mcp/request.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { quote } from '#surfaces/read-object.ts'
import { badField, createReader, readType } from './read-object.ts'
import {
  allowedTools,
  mcpApprovalFilters,
  mcpTool,
  mcpToolFilter,
  toolChoiceByServer,
} from './schema.ts'

const readTool = createReader(mcpTool)
const readFilterFields = createReader(mcpToolFilter)
const readApprovalFilters = createReader(mcpApprovalFilters)
const readByServer = createReader(toolChoiceByServer)
const readAllowed = createReader(allowedTools)

/** A tool of type `mcp`: a remote server whose tools the model may call. */
export function parseMcpTool(value: unknown, path: string): McpToolRequest {
  const tool = readTool(value, path)
  return {
    path,
    label: tool.server_label,
    url: tool.server_url ?? null,
    description: tool.server_description ?? null,
    authorization: parseAuthorization(tool.authorization, `${path}.authorization`),
    headers: parseHeaders(tool.headers ?? {}, `${path}.headers`),
    allowed: parseAllowed(tool.allowed_tools, `${path}.allowed_tools`),
    approval: parseApproval(tool.require_approval, `${path}.require_approval`),
  }
}

/** What `tool_choice` says about remote servers; what it says about other tools is not read here. */
export function parseMcpChoice(
  choice: string | JsonObject | undefined,
  given: readonly McpToolRequest[],
): McpChoice {
  if (choice === 'none') return { type: 'only', tools: [] }
  if (!isRecord(choice)) return { type: 'any' }
  if (choice['type'] === 'mcp')
    return { type: 'forced', ...findServer(choice, given, 'tool_choice') }
  if (choice['type'] !== 'allowed_tools') return { type: 'any' }
  const { tools } = readAllowed(choice, 'tool_choice')
  const entries = tools.flatMap((entry, index) => {
    const path = `tool_choice.tools[${index}]`
    return readType(entry, path) === 'mcp' ? [findServer(entry, given, path)] : []
  })
  return { type: 'only', tools: entries }
}

function findServer(value: unknown, given: readonly McpToolRequest[], path: string): ServerTools {
  const { server_label: label, name = null } = readByServer(value, path)
  if (given.some((tool) => tool.label === label)) return { label, name }
  throw badField('tool_choice', `names the server ${quote(label)}, which is not in tools`)
}

function parseAuthorization(value: string | undefined, path: string): string | null {
  if (value === undefined || isHeader('authorization', value)) return value ?? null
  throw badField(path, 'must be a token')
}

function parseHeaders(headers: JsonObject, path: string): Readonly<Record<string, string>> {
  const fields = Object.entries(headers).map(([name, value]): [string, string] => {
    if (typeof value === 'string' && isHeader(name, value)) return [name, value]
    throw badField(path, `must not have the field ${quote(name)} with such a name or value`)
  })
  return Object.fromEntries(fields)
}

function isHeader(name: string, value: string): boolean {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
}

function parseAllowed(value: unknown, path: string): ToolFilter | null {
  if (value === undefined) return null
  return Array.isArray(value)
    ? { names: parseNames(value, path), readOnly: null }
    : parseFilter(value, path)
}

function parseApproval(value: unknown, path: string): ApprovalRule {
  if (value === undefined || value === 'always') return 'always'
  if (value === 'never') return 'never'
  if (!isRecord(value)) throw badField(path, 'must be always, never or an object of filters')
  const { always, never } = readApprovalFilters(value, path)
  return {
    always: always === undefined ? null : parseFilter(always, `${path}.always`),
    never: never === undefined ? null : parseFilter(never, `${path}.never`),
  }
}

function parseFilter(value: unknown, path: string): ToolFilter {
  const { tool_names: names, read_only: readOnly = null } = readFilterFields(value, path)
  return { names: names === undefined ? null : parseNames(names, `${path}.tool_names`), readOnly }
}

function parseNames(values: readonly unknown[], path: string): readonly string[] {
  return values.map((value, index) => {
    if (typeof value === 'string') return value
    throw badField(`${path}[${index}]`, 'must be the name of a tool')
  })
}

/**
 * As the Response object repeats it. Credentials of a server are left out, also where they stand in
 * the query of its URL: a Response is stored and logged by those who receive it.
 */
export function echoMcpTool(tool: JsonObject): JsonObject {
  const { authorization: _, headers: __, server_url: url, ...rest } = tool
  if (typeof url !== 'string' || !URL.canParse(url)) return rest
  const { protocol, host, pathname } = new URL(url)
  return { ...rest, server_url: `${protocol}//${host}${pathname}` }
}
