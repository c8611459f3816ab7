import type { HostedToolItem } from '#inference/events.ts'
import type { HostedCall } from '#inference/tool-loop/hosted-tools.ts'
import { createLru } from '#lib/lru.ts'
import { errorText, type McpCallError } from './call-error.ts'
import type { McpTool } from './request.ts'
import type { McpServer } from './servers.ts'
import type { ListOutcome, McpSession } from './session.ts'

export type ToolList = ReturnType<typeof createToolList>

/** The tools of one server, requested once per response. `known`: the list in the input, if any. */
export function createToolList(
  session: McpSession,
  source: { server: McpServer; cache: ListCache; known: readonly McpTool[] | null },
) {
  let tools: readonly McpTool[] = source.known ?? []
  let loading: Promise<ListOutcome> | null =
    source.known === null ? null : Promise.resolve({ tools })

  const load = async (signal: AbortSignal): Promise<ListOutcome> => {
    const cached = source.cache.get(source.server)
    const outcome = cached === null ? await session.list(signal) : { tools: cached }
    if ('error' in outcome) return outcome
    if (cached === null) source.cache.set(source.server, outcome.tools)
    tools = outcome.tools
    return outcome
  }
  return {
    load(signal: AbortSignal): Promise<ListOutcome> {
      loading ??= load(signal)
      return loading
    },
    /** The tools loaded so far. */
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

const entriesMax = 64

type ListCache = ReturnType<typeof createListCache>

/** Recent tool lists, one for each server and set of credentials. */
export function createListCache(ageMaxMs: () => number) {
  const lists = createLru<string, { tools: readonly McpTool[]; listedAt: number }>(entriesMax)
  return {
    get(server: McpServer): readonly McpTool[] | null {
      const cached = lists.get(keyOf(server))
      const isFresh = cached !== undefined && performance.now() - cached.listedAt < ageMaxMs()
      return isFresh ? cached.tools : null
    },
    set(server: McpServer, tools: readonly McpTool[]): void {
      lists.set(keyOf(server), { tools, listedAt: performance.now() })
    },
  }
}

/** A hash, so that credentials are not stored. */
function keyOf({ url, headers }: McpServer): string {
  const fields = Object.entries(headers).toSorted(([a], [b]) => (a < b ? -1 : 1))
  const text = JSON.stringify([url.href, fields])
  return new Bun.CryptoHasher('sha256').update(text).digest('base64')
}
