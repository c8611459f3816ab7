import type { HostedToolItem } from '#inference/events.ts'
import type { HostedCall } from '#inference/tool-loop/hosted-tools.ts'
import { errorText, type McpCallError } from './call-error.ts'
import { type ServerConnection, sanitizeError } from './calls.ts'
import type { McpTool } from './request.ts'
import type { McpServer } from './servers.ts'
import type { ListOutcome } from './session.ts'

/** The tools of one server, requested once per response. */
export type ToolList = {
  load(signal: AbortSignal): Promise<ListOutcome>
  /** The tools loaded so far. */
  tools(): readonly McpTool[]
}

export function createToolList(
  server: ServerConnection,
  source: { server: McpServer; cache: ListCache; known: readonly McpTool[] | null },
): ToolList {
  let tools: readonly McpTool[] = source.known ?? []
  let loading: Promise<ListOutcome> | null =
    source.known === null ? null : Promise.resolve({ tools })

  const load = async (signal: AbortSignal): Promise<ListOutcome> => {
    const cached = source.cache.get(source.server)
    const outcome = cached === null ? await server.session.list(signal) : { tools: cached }
    if ('error' in outcome) return { error: sanitizeError(outcome.error, server.sanitize) }
    if (cached === null) source.cache.set(source.server, outcome.tools)
    tools = outcome.tools
    return outcome
  }
  return {
    load(signal) {
      loading ??= load(signal)
      return loading
    },
    tools: () => tools,
  }
}

/** The list as an `mcp_list_tools` item, with the tools that the request allows. */
export function listTools(
  label: string,
  list: ToolList,
  isVisible: (tool: McpTool) => boolean,
): HostedCall {
  const item = (tools: readonly McpTool[], error?: McpCallError): HostedToolItem => ({
    type: 'mcp_list_tools',
    server_label: label,
    tools: tools.filter(isVisible).map(describeTool),
    ...(error === undefined ? {} : { error: errorText(error) }),
  })
  return {
    isCounted: false,
    streamsArguments: false,
    stages: ['in_progress'],
    begin: () => item([]),
    async run(_, { signal }) {
      const outcome = await list.load(signal)
      return 'tools' in outcome
        ? { item: item(outcome.tools), stage: 'completed', result: '' }
        : { item: item([], outcome.error), stage: 'failed', result: '' }
    },
    refuse: (_, reason) => ({ item: { ...item([]), error: reason }, stage: 'failed', result: '' }),
  }
}

/** Clients reject null fields here. */
function describeTool({ name, description, inputSchema, annotations }: McpTool): object {
  return {
    name,
    ...(description === null ? {} : { description }),
    input_schema: inputSchema,
    ...(annotations === null ? {} : { annotations }),
  }
}

/** Recent tool lists, one for each server and set of credentials. */
export type ListCache = {
  get(server: McpServer): readonly McpTool[] | null
  set(server: McpServer, tools: readonly McpTool[]): void
}

const entriesMax = 64

export function createListCache(ageMaxMs: number): ListCache {
  const lists = new Map<string, { tools: readonly McpTool[]; listedAt: number }>()
  return {
    get(server) {
      const cached = lists.get(keyOf(server))
      const isFresh = cached !== undefined && performance.now() - cached.listedAt < ageMaxMs
      return isFresh ? cached.tools : null
    },
    set(server, tools) {
      const key = keyOf(server)
      lists.delete(key)
      lists.set(key, { tools, listedAt: performance.now() })
      const [oldest] = lists.keys()
      if (lists.size > entriesMax && oldest !== undefined) lists.delete(oldest)
    },
  }
}

/** A hash, so that credentials are not stored. */
function keyOf({ url, headers }: McpServer): string {
  const fields = Object.entries(headers).toSorted(([a], [b]) => (a < b ? -1 : 1))
  const text = JSON.stringify([url.href, fields])
  return new Bun.CryptoHasher('sha256').update(text).digest('base64')
}
