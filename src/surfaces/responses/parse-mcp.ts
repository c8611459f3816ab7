import { quote } from '#api/read-object.ts'
import type { ApprovalRule, McpToolRequest, ToolFilter } from '#hosted-tools/mcp/request.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { invalidField, readObject } from './read-object.ts'
import type { ResponseEcho } from './schema/request.ts'
import { mcpApprovalFilters, mcpTool, mcpToolFilter } from './schema/tools.ts'

/** Parses a tool of type `mcp`: a remote server whose tools the model may call. */
export function parseMcpTool(value: unknown, path: string): McpToolRequest {
  const tool = readObject(mcpTool, value, path)
  return {
    path,
    urlPath: `${path}.server_url`,
    label: tool.server_label,
    url: tool.server_url ?? null,
    description: tool.server_description ?? null,
    authorization: parseAuthorization(tool.authorization, `${path}.authorization`),
    headers: parseHeaders(tool.headers ?? {}, `${path}.headers`),
    allowed: parseAllowed(tool.allowed_tools, `${path}.allowed_tools`),
    approval: parseApproval(tool.require_approval, `${path}.require_approval`),
  }
}

function parseAuthorization(value: string | undefined, path: string): string | null {
  if (value === undefined || isHeader('authorization', value)) return value ?? null
  throw invalidField(path, 'must be a valid header value')
}

function parseHeaders(headers: JsonObject, path: string): Readonly<Record<string, string>> {
  const fields = Object.entries(headers).map(([name, value]): [string, string] => {
    if (typeof value === 'string' && isHeader(name, value)) return [name, value]
    throw invalidField(path, `has an invalid name or value: ${quote(name)}`)
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
  if (!isRecord(value)) throw invalidField(path, 'must be always, never or an object of filters')
  const { always, never } = readObject(mcpApprovalFilters, value, path)
  return {
    always: always === undefined ? null : parseFilter(always, `${path}.always`),
    never: never === undefined ? null : parseFilter(never, `${path}.never`),
  }
}

function parseFilter(value: unknown, path: string): ToolFilter {
  const { tool_names: names, read_only: readOnly = null } = readObject(mcpToolFilter, value, path)
  return { names: names === undefined ? null : parseNames(names, `${path}.tool_names`), readOnly }
}

function parseNames(values: readonly unknown[], path: string): readonly string[] {
  return values.map((value, index) => {
    if (typeof value === 'string') return value
    throw invalidField(`${path}[${index}]`, 'must be the name of a tool')
  })
}

type EchoedTool = ResponseEcho['tools'][number]

/**
 * The tool as a response repeats it: without credentials, including those in the query of the URL,
 * because clients store and log responses.
 */
export function echoMcpTool(tool: EchoedTool): EchoedTool {
  const { authorization: _, headers: __, server_url: url, ...rest } = tool
  if (typeof url !== 'string' || !URL.canParse(url)) return rest
  const { protocol, host, pathname } = new URL(url)
  return { ...rest, server_url: `${protocol}//${host}${pathname}` }
}
