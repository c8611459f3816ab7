import type { Config } from '#config/schema.ts'
import type { GenerationRequest } from '#inference/request.ts'
import type { HostedTools } from '#inference/tool-loop/hosted-tools.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { Fetch } from '#outbound/checked-fetch.ts'
import type { Resolve } from '#outbound/resolve.ts'
import type { FileSearch } from '#retrieval/file-search/file-search.ts'
import { type FileSearchRequest, noFileSearch } from '#retrieval/file-search/request.ts'
import { createMcpTools, type RequestedServer } from './mcp/mcp-tools.ts'
import type { McpChoice, McpHistory, McpToolRequest } from './mcp/request.ts'
import { findServer, mayUse } from './mcp/servers.ts'
import { createMcpSession } from './mcp/session.ts'
import { createListCache, createToolList } from './mcp/tool-list.ts'
import { noWebSearch, type WebSearchRequest } from './web-search/request.ts'
import { createWebSearch } from './web-search/web-search.ts'

/** The tools that a request wants the gateway to run. */
export type HostedToolRequest = {
  readonly mcp: readonly McpToolRequest[]
  readonly mcpChoice: McpChoice
  readonly mcpHistory: McpHistory
  readonly fileSearch: FileSearchRequest
  readonly webSearch: WebSearchRequest
}

export const noHostedTools: HostedToolRequest = {
  mcp: [],
  mcpChoice: { type: 'any' },
  mcpHistory: { lists: new Map(), approved: [] },
  fileSearch: noFileSearch,
  webSearch: noWebSearch,
}

/** The tools that this deployment runs. */
export type HostedToolbox = ReturnType<typeof createHostedTools>

export function createHostedTools(deps: {
  config: Pick<Config, 'mcp' | 'mcpServer' | 'webSearch'>
  fetch: Fetch
  resolve: Resolve
  fileSearch: FileSearch
}) {
  const { config } = deps
  const cache = createListCache(() => config.mcp.listCacheMs)

  const openServer = async (
    request: McpToolRequest,
    history: McpHistory,
    groups: readonly string[],
  ): Promise<RequestedServer> => {
    const server = await findServer(request, groups, deps)
    const session = createMcpSession(server, config.mcp)
    const known = knownTools(request, history)
    return { request, session, list: createToolList(session, { server, cache, known }) }
  }
  const openMcp = async (
    { mcp, mcpChoice, mcpHistory }: HostedToolRequest,
    { groups, takenNames }: { groups: readonly string[]; takenNames: ReadonlySet<string> },
  ) => {
    const servers = await Promise.all(mcp.map((request) => openServer(request, mcpHistory, groups)))
    return createMcpTools({ servers, choice: mcpChoice, history: mcpHistory, takenNames })
  }
  const openWebSearch = async (
    request: WebSearchRequest,
    { groups, takenNames }: { groups: readonly string[]; takenNames: ReadonlySet<string> },
  ) => {
    const { mcpServer: label = '', tool, queryField } = config.webSearch
    const path = request.tool?.path ?? ''
    const server = await findServer(serverWithLabel(label, path), groups, deps)
    const session = createMcpSession(server, config.mcp)
    return createWebSearch(request, { session, tool, queryField }, takenNames)
  }
  return {
    /**
     * The hosted tools of one request that uses any. Connections are opened later. Throws
     * `invalid_request` with the field for a server that the principal may not use.
     */
    async open(
      request: HostedToolRequest,
      { caller, tools }: { caller: RequestPrincipal; tools: GenerationRequest['tools'] },
    ): Promise<HostedTools> {
      const { fileSearch } = request
      const own = tools.filter(({ namespace }) => namespace === undefined)
      const takenNames = new Set(own.map(({ name }) => name))
      const kinds = [
        ...(usesServers(request)
          ? [await openMcp(request, { groups: caller.groups, takenNames })]
          : []),
        ...(usesFiles(request) ? [deps.fileSearch.open(fileSearch, takenNames)] : []),
        ...(request.webSearch.tool === null
          ? []
          : [await openWebSearch(request.webSearch, { groups: caller.groups, takenNames })]),
      ]
      return kinds.reduce(joinTools)
    },
  }
}

export function usesHostedTools(request: HostedToolRequest): boolean {
  return usesServers(request) || usesFiles(request) || request.webSearch.tool !== null
}

/** Whether the gateway can search the web for members of these groups. */
export function hasWebSearch(
  { webSearch, mcpServer }: Pick<Config, 'webSearch' | 'mcpServer'>,
  groups: readonly string[],
): boolean {
  const entry = mcpServer.find(({ label }) => label === webSearch.mcpServer)
  return entry !== undefined && mayUse(entry, groups)
}

function serverWithLabel(label: string, path: string): McpToolRequest {
  return {
    path,
    urlPath: path,
    label,
    url: null,
    description: null,
    authorization: null,
    headers: {},
    allowed: null,
    approval: 'never',
  }
}

function usesServers({ mcp, mcpHistory }: HostedToolRequest): boolean {
  return mcp.length > 0 || mcpHistory.approved.length > 0
}

function usesFiles({ fileSearch }: HostedToolRequest): boolean {
  return fileSearch.tool !== null || fileSearch.found.length > 0
}

/** The tool list in the input; null if there is none or it lacks a tool that the request allows. */
function knownTools({ label, allowed }: McpToolRequest, history: McpHistory) {
  const tools = history.lists.get(label) ?? null
  const isListed = (name: string) => tools?.some((tool) => tool.name === name) === true
  return (allowed?.names ?? []).every(isListed) ? tools : null
}

function joinTools(one: HostedTools, other: HostedTools): HostedTools {
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
