import type { FunctionTool, ToolChoice, ToolName } from '#inference/request.ts'
import type { HostedCall, HostedTools, OpeningStep } from '#inference/tool-loop/hosted-tools.ts'
import { AppError } from '#lib/errors.ts'
import { callTool, requestApproval } from './calls.ts'
import {
  type ApprovedCall,
  hashedMcpToolName,
  type McpChoice,
  type McpHistory,
  type McpTool,
  type McpToolRequest,
  matchesFilter,
  mcpToolName,
  needsApproval,
} from './request.ts'
import type { McpSession } from './session.ts'
import { listTools, type ToolList } from './tool-list.ts'

/** A server of a request with its tools. */
export type RequestedServer = {
  readonly request: McpToolRequest
  readonly session: McpSession
  readonly list: ToolList
}

type McpToolsOptions = {
  readonly servers: readonly RequestedServer[]
  readonly choice: McpChoice
  readonly history: McpHistory
  /** The names of the client's own tools. */
  readonly takenNames: ReadonlySet<string>
}

/** A tool and its function name. */
type NamedTool = RequestedServer & {
  readonly name: string
  readonly tool: McpTool
}

/**
 * The tools of remote servers for one request. Throws `invalid_request` for an approved call whose
 * server is not among the tools.
 */
export function createMcpTools(options: McpToolsOptions): HostedTools {
  const { servers, choice, history } = options
  let tools: ReadonlyMap<string, NamedTool> | null = null
  const toolsByName = () => {
    tools ??= nameTools(options)
    return tools
  }
  const lists = servers.filter(
    ({ request, list }) => list.tools().length === 0 && isAllowed(request.label, choice),
  )
  return {
    opening: [
      ...lists.map(listStep),
      ...history.approved.map((approved) => approvedStep(approved, servers)),
    ],
    definitions: () => [...toolsByName().values()].map(toFunctionTool),
    resolveToolChoice: (requested) => choose(requested, choice, [...toolsByName().values()]),
    call(name) {
      const found = toolsByName().get(name)
      return found === undefined ? null : toHostedCall(found)
    },
    close() {
      for (const { session } of servers) session.close()
    },
  }
}

function listStep({ request, list }: RequestedServer): OpeningStep {
  const call = listTools(request.label, list, (tool) => isVisible(request, tool))
  return { call, args: '', callId: null }
}

function isVisible({ allowed }: McpToolRequest, tool: McpTool): boolean {
  return allowed === null || matchesFilter(tool, allowed)
}

function approvedStep(approved: ApprovedCall, servers: readonly RequestedServer[]): OpeningStep {
  const found = servers.find(({ request }) => request.label === approved.label)
  if (found === undefined) {
    throw new AppError(
      'invalid_request',
      `The input approves a call of the server "${approved.label}", which is not among the tools.`,
      { param: 'tools' },
    )
  }
  const { request, session, list } = found
  const { label, name, requestId, args } = approved
  const findTool = async (signal: AbortSignal) => {
    const outcome = await list.load(signal)
    if ('error' in outcome) return 'The tools of the server could not be listed.'
    const tool = outcome.tools.find((tool) => tool.name === name)
    return tool !== undefined && isVisible(request, tool) ? tool : 'No such tool.'
  }
  return { call: callTool({ label, name, session, requestId, findTool }), args, callId: requestId }
}

function nameTools({
  servers,
  choice,
  takenNames,
}: McpToolsOptions): ReadonlyMap<string, NamedTool> {
  const names = new Map<string, NamedTool>()
  for (const requested of servers) {
    const { request, list } = requested
    for (const tool of list.tools()) {
      if (!isVisible(request, tool) || !isAllowed(request.label, choice, tool.name)) continue
      const first = mcpToolName(request.label, tool.name)
      const isTaken = takenNames.has(first) || names.has(first)
      const name = isTaken ? hashedMcpToolName(request.label, tool.name) : first
      if (!names.has(name)) names.set(name, { ...requested, name, tool })
    }
  }
  return names
}

/** Whether `tool_choice` allows this tool of a server; without `tool`, whether it allows any. */
function isAllowed(label: string, choice: McpChoice, tool?: string): boolean {
  if (choice.type !== 'only') return true
  return choice.tools.some(
    (entry) =>
      entry.label === label && (entry.name === null || tool === undefined || entry.name === tool),
  )
}

function choose(
  requested: ToolChoice,
  choice: McpChoice,
  offered: readonly NamedTool[],
): ToolChoice {
  if (choice.type === 'only' && requested.type === 'allowed') {
    return { ...requested, tools: [...requested.tools, ...offered.map(toToolName)] }
  }
  if (choice.type !== 'forced' || requested.type !== 'required') return requested
  const tools = offered
    .filter(({ request }) => request.label === choice.label)
    .filter(({ tool }) => choice.name === null || tool.name === choice.name)
    .map(toToolName)
  const [first, second] = tools
  // A call cannot be forced if the tools of the server could not be listed.
  if (first === undefined) return { type: 'auto' }
  if (second === undefined) return { type: 'tool', ...first, form: 'function' }
  return { type: 'allowed', mode: 'required', tools }
}

function toToolName({ name }: NamedTool): ToolName {
  return { name }
}

function toFunctionTool({ name, tool, request }: NamedTool): FunctionTool {
  const description = [tool.description, request.description].find((text) => text !== null) ?? null
  // Schemas of servers rarely meet the requirements of strict mode.
  return { type: 'function', name, description, parameters: tool.inputSchema, strict: false }
}

function toHostedCall({ request, session, tool }: NamedTool): HostedCall {
  const { label, approval } = request
  if (needsApproval(tool, approval)) return requestApproval(label, tool)
  return callTool({ label, name: tool.name, session, findTool: async () => tool })
}
