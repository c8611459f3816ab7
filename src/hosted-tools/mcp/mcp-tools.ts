import type { FunctionTool, ToolChoice, ToolName } from '#inference/request.ts'
import type { HostedCall, HostedTools, OpeningStep } from '#inference/tool-loop/hosted-tools.ts'
import { AppError } from '#lib/errors.ts'
import { askApproval, callApproved, callTool, type OpenServer } from './calls.ts'
import { hashedMcpToolName, mcpToolName } from './names.ts'
import {
  type ApprovedCall,
  type McpChoice,
  type McpHistory,
  type McpTool,
  type McpToolRequest,
  meets,
  needsApproval,
} from './request.ts'
import { listTools, type ToolList } from './tool-list.ts'

/** A server of a request with its tools. */
export type RequestedServer = {
  readonly asked: McpToolRequest
  readonly server: OpenServer
  readonly list: ToolList
}

type McpToolsOptions = {
  readonly servers: readonly RequestedServer[]
  readonly choice: McpChoice
  readonly history: McpHistory
  /** The names of the caller's own tools. */
  readonly takenNames: ReadonlySet<string>
}

/** A tool under the name that the model knows it by. */
type Offered = RequestedServer & {
  readonly name: string
  readonly tool: McpTool
}

/**
 * The tools of remote servers for one request. Throws `invalid_request` where a call was approved
 * whose server is not among the tools.
 */
export function createMcpTools(options: McpToolsOptions): HostedTools {
  const { servers, choice, history } = options
  let offered: ReadonlyMap<string, Offered> | null = null
  const known = () => {
    offered ??= nameTools(options)
    return offered
  }
  const lists = servers.filter(
    ({ asked, list }) => list.tools().length === 0 && mayUse(asked.label, choice),
  )
  return {
    opening: [
      ...lists.map(listStep),
      ...history.approved.map((approved) => approvedStep(approved, servers)),
    ],
    definitions: () => [...known().values()].map(describe),
    choose: (wanted) => choose(wanted, choice, [...known().values()]),
    call(name) {
      const found = known().get(name)
      return found === undefined ? null : callOf(found)
    },
    close() {
      for (const { server } of servers) server.session.close()
    },
  }
}

function listStep({ asked, list }: RequestedServer): OpeningStep {
  const call = listTools(asked.label, list, (tool) => isVisible(asked, tool))
  return { call, args: '', callId: null }
}

function isVisible({ allowed }: McpToolRequest, tool: McpTool): boolean {
  return allowed === null || meets(tool, allowed)
}

function approvedStep(approved: ApprovedCall, servers: readonly RequestedServer[]): OpeningStep {
  const found = servers.find(({ asked }) => asked.label === approved.label)
  if (found === undefined) {
    throw new AppError(
      'invalid_request',
      `The input approves a call of the server "${approved.label}", which is not among the tools.`,
      { param: 'tools' },
    )
  }
  const { asked, server, list } = found
  const call = callApproved(server, approved, async (signal) => {
    const outcome = await list.load(signal)
    if ('error' in outcome) return 'The tools of the server could not be listed.'
    const tool = outcome.tools.find(({ name }) => name === approved.name)
    return tool !== undefined && isVisible(asked, tool) ? tool : 'There is no such tool.'
  })
  return { call, args: approved.args, callId: approved.requestId }
}

function nameTools({ servers, choice, takenNames }: McpToolsOptions): ReadonlyMap<string, Offered> {
  const names = new Map<string, Offered>()
  for (const requested of servers) {
    const { asked, list } = requested
    for (const tool of list.tools()) {
      if (!isVisible(asked, tool) || !mayUse(asked.label, choice, tool.name)) continue
      const first = mcpToolName(asked.label, tool.name)
      const isTaken = takenNames.has(first) || names.has(first)
      const name = isTaken ? hashedMcpToolName(asked.label, tool.name) : first
      if (!names.has(name)) names.set(name, { ...requested, name, tool })
    }
  }
  return names
}

/** Whether `tool_choice` lets a tool of this server be called: this one, or any at all. */
function mayUse(label: string, choice: McpChoice, tool?: string): boolean {
  if (choice.type !== 'only') return true
  return choice.tools.some(
    (entry) =>
      entry.label === label && (entry.name === null || tool === undefined || entry.name === tool),
  )
}

function choose(wanted: ToolChoice, choice: McpChoice, offered: readonly Offered[]): ToolChoice {
  if (choice.type === 'only' && wanted.type === 'allowed') {
    return { ...wanted, tools: [...wanted.tools, ...offered.map(nameOf)] }
  }
  if (choice.type !== 'forced' || wanted.type !== 'required') return wanted
  const tools = offered
    .filter(({ asked }) => asked.label === choice.label)
    .filter(({ tool }) => choice.name === null || tool.name === choice.name)
    .map(nameOf)
  const [first, second] = tools
  // A server whose tools cannot be listed forces nothing.
  if (first === undefined) return { type: 'auto' }
  if (second === undefined) return { type: 'tool', ...first, form: 'function' }
  return { type: 'allowed', mode: 'required', tools }
}

function nameOf({ name }: Offered): ToolName {
  return { name }
}

function describe({ name, tool, asked }: Offered): FunctionTool {
  const description = [tool.description, asked.description].find((text) => text !== null) ?? null
  // Schemas of servers are rarely in the form that strict mode demands.
  return { type: 'function', name, description, parameters: tool.inputSchema, strict: false }
}

function callOf({ asked, server, tool }: Offered): HostedCall {
  if (needsApproval(tool, asked.approval)) return askApproval(asked.label, tool)
  return callTool(server, tool)
}
