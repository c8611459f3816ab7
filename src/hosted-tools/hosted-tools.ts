import type { Config } from '#config/schema.ts'
import type { GenerationRequest } from '#inference/request.ts'
import type { HostedTools } from '#inference/tool-loop/hosted-tools.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { Fetch } from '#outbound/checked-fetch.ts'
import type { Resolve } from '#outbound/resolve.ts'
import type { FileSearch } from '#retrieval/file-search/file-search.ts'
import { type FileSearchRequest, noFileSearch } from '#retrieval/file-search/request.ts'
import { createSanitizer } from './mcp/calls.ts'
import { createMcpTools, type RequestedServer } from './mcp/mcp-tools.ts'
import type { McpChoice, McpHistory, McpToolRequest } from './mcp/request.ts'
import { findServer } from './mcp/servers.ts'
import { createMcpSession } from './mcp/session.ts'
import { createListCache, createToolList } from './mcp/tool-list.ts'

/** The tools that a request wants the gateway to run. */
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

/** The tools that this deployment runs. */
export type HostedToolbox = {
  /**
   * The hosted tools of one request; null if it uses none. Connections are opened later. Throws
   * `invalid_request` with the field for a server that the principal may not use.
   */
  open(
    request: HostedToolRequest,
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
    request: McpToolRequest,
    history: McpHistory,
    groups: readonly string[],
  ): Promise<RequestedServer> => {
    const found = await findServer(request, groups, deps)
    const server = {
      label: request.label,
      session: createMcpSession({ ...found, listMs: limits.listMs, callMs: limits.callMs }),
      sanitize: createSanitizer(found.secrets, limits.outputCharsMax),
    }
    const known = knownTools(request, history)
    return { request, server, list: createToolList(server, { server: found, cache, known }) }
  }
  const openMcp = async (
    { mcp, mcpChoice, mcpHistory }: HostedToolRequest,
    { groups, takenNames }: { groups: readonly string[]; takenNames: ReadonlySet<string> },
  ) => {
    const servers = await Promise.all(mcp.map((request) => openServer(request, mcpHistory, groups)))
    return createMcpTools({ servers, choice: mcpChoice, history: mcpHistory, takenNames })
  }
  return {
    async open(request, { caller, tools }) {
      const { mcp, mcpHistory, fileSearch } = request
      const usesServers = mcp.length > 0 || mcpHistory.approved.length > 0
      const usesFiles = fileSearch.tool !== null || fileSearch.found.length > 0
      if (!usesServers && !usesFiles) return null
      const own = tools.filter(({ namespace }) => namespace === undefined)
      const takenNames = new Set(own.map(({ name }) => name))
      return joinTools([
        ...(usesServers ? [await openMcp(request, { groups: caller.groups, takenNames })] : []),
        ...(usesFiles ? [deps.fileSearch.open(fileSearch, takenNames)] : []),
      ])
    },
  }
}

/** The tool list in the input; null if there is none or it lacks a tool that the request allows. */
function knownTools({ label, allowed }: McpToolRequest, history: McpHistory) {
  const tools = history.lists.get(label) ?? null
  const isListed = (name: string) => tools?.some((tool) => tool.name === name) === true
  return (allowed?.names ?? []).every(isListed) ? tools : null
}

/** Combines the hosted tools of several kinds; null if there are none. */
function joinTools([first, ...others]: readonly HostedTools[]): HostedTools | null {
  return first === undefined ? null : others.reduce(joinTwo, first)
}

function joinTwo(one: HostedTools, other: HostedTools): HostedTools {
  return {
    opening: [...one.opening, ...other.opening],
    definitions: () => [...one.definitions(), ...other.definitions()],
    resolveToolChoice: (choice) => other.resolveToolChoice(one.resolveToolChoice(choice)),
    call: (name) => one.call(name) ?? other.call(name),
    show(events) {
      const shown = one.show?.(events) ?? events
      return other.show?.(shown) ?? shown
    },
    close() {
      one.close()
      other.close()
    },
  }
}
