import type { HostedToolItem } from '#inference/events.ts'
import type { HostedCall } from '#inference/tool-loop/hosted-tools.ts'
import { errorText, type McpCallError } from './call-error.ts'
import { type OpenServer, showError } from './calls.ts'
import type { ListCache } from './list-cache.ts'
import type { McpTool } from './request.ts'
import type { McpServer } from './servers.ts'
import type { ListOutcome } from './session.ts'

/** The tools of one server, asked for once in a response. */
export type ToolList = {
  load(signal: AbortSignal): Promise<ListOutcome>
  /** What is known by now. */
  tools(): readonly McpTool[]
}

export function createToolList(
  server: OpenServer,
  given: { server: McpServer; cache: ListCache; known: readonly McpTool[] | null },
): ToolList {
  let tools: readonly McpTool[] = given.known ?? []
  let loading: Promise<ListOutcome> | null = given.known === null ? null : answer({ tools })

  const load = async (signal: AbortSignal): Promise<ListOutcome> => {
    const cached = given.cache.find(given.server)
    const outcome = cached === null ? await server.session.list(signal) : { tools: cached }
    if ('error' in outcome) return { error: showError(outcome.error, server.show) }
    if (cached === null) given.cache.keep(given.server, outcome.tools)
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

function answer(outcome: ListOutcome): Promise<ListOutcome> {
  return Promise.resolve(outcome)
}

/** The list as an `mcp_list_tools` item; it holds what the caller lets the model see. */
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
    async run(_, signal) {
      const outcome = await list.load(signal)
      return 'tools' in outcome
        ? { item: item(outcome.tools), stage: 'completed', result: '' }
        : { item: item([], outcome.error), stage: 'failed', result: '' }
    },
    refuse: (_, reason) => ({ item: { ...item([]), error: reason }, stage: 'failed', result: '' }),
  }
}

/** Clients take a field that is null for a fault here. */
function describeTool({ name, description, inputSchema, annotations }: McpTool): object {
  return {
    name,
    ...(description === null ? {} : { description }),
    input_schema: inputSchema,
    ...(annotations === null ? {} : { annotations }),
  }
}
