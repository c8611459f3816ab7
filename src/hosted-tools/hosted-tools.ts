import type { Config } from '#config/schema.ts'
import type { GenerationRequest } from '#inference/request.ts'
import type { HostedTools } from '#inference/tool-loop/hosted-tools.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { Fetch } from '#outbound/checked-fetch.ts'
import type { Resolve } from '#outbound/resolve.ts'
import type { FileSearch } from '#retrieval/file-search/file-search.ts'
import { type FileSearchRequest, noFileSearch } from '#retrieval/file-search/request.ts'
import { joinTools } from './join-tools.ts'
import { createShow } from './mcp/calls.ts'
import { createListCache } from './mcp/list-cache.ts'
import { createMcpTools, type RequestedServer } from './mcp/mcp-tools.ts'
import type { McpChoice, McpHistory, McpToolRequest } from './mcp/request.ts'
import { findServer } from './mcp/servers.ts'
import { createMcpSession } from './mcp/session.ts'
import { createToolList } from './mcp/tool-list.ts'

/** What a request says about tools that run here. */
export type HostedToolRequest = {
  readonly mcp: readonly McpToolRequest[]
  readonly mcpChoice: McpChoice
  readonly mcpHistory: McpHistory
  readonly fileSearch: FileSearchRequest
}

export const noHostedTools: HostedToolRequest = {
  mcp: [],
  mcpChoice: { type: 'any' },
  mcpHistory: { lists: new Map(), approved: [] },
  fileSearch: noFileSearch,
}

/** The tools that this deployment runs for its callers. */
export type HostedToolbox = {
  /**
   * The hosted tools of one request, in the name of its caller; null where it asks for none. Nothing
   * is connected yet. Throws `invalid_request` that names the field for what may not be used.
   */
  open(
    asked: HostedToolRequest,
    context: { caller: RequestPrincipal; tools: GenerationRequest['tools'] },
  ): Promise<HostedTools | null>
}

export function createHostedTools(deps: {
  config: Pick<Config, 'mcp' | 'mcpServer'>
  fetch: Fetch
  resolve: Resolve
  fileSearch: FileSearch
}): HostedToolbox {
  const { mcp: limits } = deps.config
  const cache = createListCache(limits.listCacheMs)

  const openServer = async (
    asked: McpToolRequest,
    history: McpHistory,
    groups: readonly string[],
  ): Promise<RequestedServer> => {
    const found = await findServer(asked, groups, deps)
    const server = {
      label: asked.label,
      session: createMcpSession({ ...found, listMs: limits.listMs, callMs: limits.callMs }),
      show: createShow(found.secrets, limits.outputCharsMax),
    }
    const known = knownTools(asked, history)
    return { asked, server, list: createToolList(server, { server: found, cache, known }) }
  }
  const openMcp = async (
    { mcp, mcpChoice, mcpHistory }: HostedToolRequest,
    { groups, takenNames }: { groups: readonly string[]; takenNames: ReadonlySet<string> },
  ) => {
    const servers = await Promise.all(mcp.map((asked) => openServer(asked, mcpHistory, groups)))
    return createMcpTools({ servers, choice: mcpChoice, history: mcpHistory, takenNames })
  }
  return {
    async open(asked, { caller, tools }) {
      const { mcp, mcpHistory, fileSearch } = asked
      const asksServers = mcp.length > 0 || mcpHistory.approved.length > 0
      const asksFiles = fileSearch.tool !== null || fileSearch.found.length > 0
      if (!asksServers && !asksFiles) return null
      const own = tools.filter(({ namespace }) => namespace === undefined)
      const takenNames = new Set(own.map(({ name }) => name))
      return joinTools([
        ...(asksServers ? [await openMcp(asked, { groups: caller.groups, takenNames })] : []),
        ...(asksFiles ? [deps.fileSearch.open(fileSearch, { caller, takenNames })] : []),
      ])
    },
  }
}

/** The list that the input holds, unless the request allows a tool that is not on it. */
function knownTools({ label, allowed }: McpToolRequest, history: McpHistory) {
  const tools = history.lists.get(label) ?? null
  const isListed = (name: string) => tools?.some((tool) => tool.name === name) === true
  return (allowed?.names ?? []).every(isListed) ? tools : null
}
