import type { HostedToolItem } from '#inference/events.ts'
import type { HostedCall, HostedOutcome } from '#inference/tool-loop/hosted-tools.ts'
import { newId } from '#lib/id.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import { errorText, type McpCallError } from './call-error.ts'
import type { ApprovedCall, McpTool } from './request.ts'
import { cutText } from './result.ts'
import type { CallOutcome, McpSession } from './session.ts'

/** A server in use by one response. */
export type OpenServer = {
  readonly label: string
  readonly session: McpSession
  /** What the model, and the caller, may see of a text of the server. */
  readonly show: (text: string) => string
}

/** The call of a tool as an `mcp_call` item. */
export function callTool(server: OpenServer, tool: McpTool): HostedCall {
  return mcpCall(server.label, tool.name, {
    run: (args, signal) => runTool(server, { tool, args, signal }),
  })
}

/** A call that was approved: which tool it means is known once the tools are. */
export function callApproved(
  server: OpenServer,
  { requestId, name }: ApprovedCall,
  findTool: (signal: AbortSignal) => Promise<McpTool | string>,
): HostedCall {
  return mcpCall(server.label, name, {
    requestId,
    async run(args, signal) {
      const tool = await findTool(signal)
      if (typeof tool !== 'string') return runTool(server, { tool, args, signal })
      return { error: invalidParams(tool) }
    },
  })
}

/** A call that waits for the caller, as an `mcp_approval_request` item; its answer names the id. */
export function askApproval(label: string, { name }: McpTool): HostedCall {
  const id = newId('mcpr_')
  const begin = (args: string): HostedToolItem => ({
    id,
    type: 'mcp_approval_request',
    server_label: label,
    name,
    arguments: args,
  })
  const end = (args: string): HostedOutcome => ({ item: begin(args), stage: null, result: null })
  return {
    isCounted: false,
    streamsArguments: false,
    stages: [],
    begin,
    run: async (args) => end(args),
    refuse: end,
  }
}

type McpCallWork = {
  requestId?: string
  run(args: string, signal: AbortSignal): Promise<CallOutcome>
}

function mcpCall(label: string, name: string, work: McpCallWork): HostedCall {
  const begin = (args: string) => ({
    type: 'mcp_call',
    server_label: label,
    name,
    arguments: args,
    status: 'in_progress',
    approval_request_id: work.requestId ?? null,
    output: null,
    error: null,
  })
  const end = (args: string, outcome: CallOutcome): HostedOutcome => {
    const isDone = 'text' in outcome
    const status = isDone ? 'completed' : 'failed'
    return {
      item: { ...begin(args), status, ...(isDone ? { output: outcome.text } : outcome) },
      stage: status,
      result: isDone ? outcome.text : `The call failed: ${errorText(outcome.error)}`,
    }
  }
  return {
    isCounted: true,
    streamsArguments: true,
    stages: ['in_progress'],
    begin,
    run: async (args, signal) => end(args, await work.run(args, signal)),
    refuse: (args, reason) => end(args, { error: invalidParams(reason) }),
  }
}

async function runTool(
  { session, show }: OpenServer,
  { tool, args, signal }: { tool: McpTool; args: string; signal: AbortSignal },
): Promise<CallOutcome> {
  const values = args.trim() === '' ? {} : parseJson(args)
  if (!isRecord(values)) return { error: invalidParams('The arguments are not a JSON object.') }
  const outcome = await session.call(tool, values, signal)
  return 'text' in outcome
    ? { text: show(outcome.text) }
    : { error: showError(outcome.error, show) }
}

export function showError(error: McpCallError, show: OpenServer['show']): McpCallError {
  if (error.type !== 'mcp_tool_execution_error') return { ...error, message: show(error.message) }
  const content = error.content.map(({ text }) => ({ type: 'text' as const, text: show(text) }))
  return { ...error, content }
}

/** As JSON-RPC numbers it. */
function invalidParams(message: string): McpCallError {
  return { type: 'mcp_protocol_error', code: -32_602, message }
}

/** Shorter ones are words that a text may hold by chance. */
const secretCharsMin = 8

/** Cuts texts to their limit, and takes out what was sent to the server in confidence. */
export function createShow(secrets: readonly string[], charsMax: number): OpenServer['show'] {
  const long = secrets.filter((secret) => secret.length >= secretCharsMin)
  return (text) => {
    const clean = long.reduce((rest, secret) => rest.replaceAll(secret, '[redacted]'), text)
    return cutText(clean, charsMax)
  }
}
