import type { JsonObject } from '#lib/json.ts'

/** A remote server as a request names it: an entry of `tools` of type `mcp`. */
export type McpToolRequest = {
  /** Where it stands in the request: `tools[2]`. */
  readonly path: string
  readonly label: string
  /** Null where the label alone says which server is meant. */
  readonly url: string | null
  readonly description: string | null
  /** Credentials of the caller for this server; never logged, shown or kept. */
  readonly authorization: string | null
  readonly headers: Readonly<Record<string, string>>
  /** Null: every tool. */
  readonly allowed: ToolFilter | null
  readonly approval: ApprovalRule
}

/** Tools that meet everything that is given here. */
export type ToolFilter = {
  readonly names: readonly string[] | null
  /** Whether the server says that the tool only reads. */
  readonly readOnly: boolean | null
}

/** Which calls wait for the caller. What neither filter names needs approval. */
export type ApprovalRule =
  | 'always'
  | 'never'
  | { readonly always: ToolFilter | null; readonly never: ToolFilter | null }

/** What `tool_choice` says about the tools of remote servers. */
export type McpChoice =
  | { readonly type: 'any' }
  | ({ readonly type: 'forced' } & ServerTools)
  /** Nothing but these. */
  | { readonly type: 'only'; readonly tools: readonly ServerTools[] }

/** One tool of a server, or all of them. */
export type ServerTools = { readonly label: string; readonly name: string | null }

/** What the input says about remote servers. */
export type McpHistory = {
  /** The tools of servers whose list the input holds, by label. */
  readonly lists: ReadonlyMap<string, readonly McpTool[]>
  /** Calls that were approved and have not run yet. */
  readonly approved: readonly ApprovedCall[]
}

export type ApprovedCall = {
  /** The id of the approval request, and the call id under which the input holds the call. */
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

export function meets(tool: Pick<McpTool, 'name' | 'annotations'>, filter: ToolFilter): boolean {
  const { names, readOnly } = filter
  if (names !== null && !names.includes(tool.name)) return false
  return readOnly === null || (tool.annotations?.['readOnlyHint'] === true) === readOnly
}

export function needsApproval(tool: McpTool, rule: ApprovalRule): boolean {
  if (typeof rule === 'string') return rule === 'always'
  if (rule.always !== null && meets(tool, rule.always)) return true
  return rule.never === null || !meets(tool, rule.never)
}
