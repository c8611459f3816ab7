import { createHash } from 'node:crypto'
import type { JsonObject } from '#lib/json.ts'

/** A remote server as a request names it: an entry of `tools` of type `mcp`. */
export type McpToolRequest = {
  /** Its path in the request: `tools[2]`. */
  readonly path: string
  /** The path of its URL. */
  readonly urlPath: string
  readonly label: string
  /** Null where the server is identified by its label. */
  readonly url: string | null
  readonly description: string | null
  /** The client's credential for this server; never logged, displayed or stored. */
  readonly authorization: string | null
  readonly headers: Readonly<Record<string, string>>
  /** Null: every tool is allowed. */
  readonly allowed: ToolFilter | null
  readonly approval: ApprovalRule
}

/** Matches tools that meet all conditions that are not null. */
export type ToolFilter = {
  readonly names: readonly string[] | null
  /** Whether the server declares the tool read-only. */
  readonly readOnly: boolean | null
  /** Tools that never match. */
  readonly except?: readonly string[]
}

/** Which calls need approval. Tools that match neither filter do. */
export type ApprovalRule =
  | 'always'
  | 'never'
  | { readonly always: ToolFilter | null; readonly never: ToolFilter | null }

/** The part of `tool_choice` that concerns the tools of remote servers. */
export type McpChoice =
  | { readonly type: 'any' }
  | ({ readonly type: 'forced' } & ServerTools)
  | { readonly type: 'only'; readonly tools: readonly ServerTools[] }

/** One tool of a server, or all of them. */
export type ServerTools = { readonly label: string; readonly name: string | null }

/** The items of the input that concern remote servers. */
export type McpHistory = {
  /** The tool lists in the input, by server label. */
  readonly lists: ReadonlyMap<string, readonly McpTool[]>
  /** Approved calls without a result. */
  readonly approved: readonly ApprovedCall[]
}

export type ApprovedCall = {
  /** The id of the approval request, which is also the call id in the input. */
  readonly requestId: string
  readonly label: string
  readonly name: string
  readonly args: string
}

/** A tool as its server describes it. */
export type McpTool = {
  readonly name: string
  readonly description: string | null
  readonly inputSchema: JsonObject
  readonly annotations: JsonObject | null
}

export function matchesFilter(
  tool: Pick<McpTool, 'name' | 'annotations'>,
  filter: ToolFilter,
): boolean {
  const { names, readOnly, except = [] } = filter
  if (except.includes(tool.name)) return false
  if (names !== null && !names.includes(tool.name)) return false
  return readOnly === null || (tool.annotations?.['readOnlyHint'] === true) === readOnly
}

export function needsApproval(tool: McpTool, rule: ApprovalRule): boolean {
  if (typeof rule === 'string') return rule === 'always'
  if (rule.always !== null && matchesFilter(tool, rule.always)) return true
  return rule.never === null || !matchesFilter(tool, rule.never)
}

/** The longest function name that every upstream accepts. */
const nameCharsMax = 64
const hashChars = 8

/**
 * The function name of a remote server's tool. It is the same in every request, so calls of earlier
 * turns keep their names.
 */
export function mcpToolName(label: string, tool: string): string {
  const name = `mcp__${label}__${tool}`
  const isLegal = name.length <= nameCharsMax && /^[a-zA-Z0-9_-]+$/.test(name)
  return isLegal ? name : hashedMcpToolName(label, tool)
}

/** An alternative name for the tool, used where the first one is taken. */
export function hashedMcpToolName(label: string, tool: string): string {
  const name = `mcp__${label}__${tool}`.replace(/[^a-zA-Z0-9_-]/g, '_')
  const hash = createHash('sha256').update(`${label}\n${tool}`).digest('hex').slice(0, hashChars)
  return `${name.slice(0, nameCharsMax - hashChars - 1)}_${hash}`
}
