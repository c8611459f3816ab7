import type { HostedToolItem } from '#inference/events.ts'
import type { HostedCall, HostedOutcome } from '#inference/tool-loop/hosted-tools.ts'
import { newId } from '#lib/id.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import type { RequestContext } from '#lib/request-context.ts'
import { errorText, type McpCallError } from './call-error.ts'
import type { ApprovedCall, McpTool } from './request.ts'
import type { CallOutcome, McpSession } from './session.ts'

/** A server that one response uses. */
export type ServerConnection = {
  readonly label: string
  readonly session: McpSession
  /** Redacts secrets in a text of the server and truncates it. */
  readonly sanitize: (text: string) => string
}

/** A tool call, represented by an `mcp_call` item. */
export function callTool(server: ServerConnection, tool: McpTool): HostedCall {
  return mcpCall(server.label, tool.name, {
    run: (args, { signal }) => runTool(server, { tool, args, signal }),
  })
}

/** An approved call; its tool is resolved when the tool list is loaded. */
export function callApproved(
  server: ServerConnection,
  { requestId, name }: ApprovedCall,
  findTool: (signal: AbortSignal) => Promise<McpTool | string>,
): HostedCall {
  return mcpCall(server.label, name, {
    requestId,
    async run(args, { signal }) {
      const tool = await findTool(signal)
      if (typeof tool !== 'string') return runTool(server, { tool, args, signal })
      return { error: invalidParams(tool) }
    },
  })
}

/** A call that needs approval, represented by an `mcp_approval_request` item. */
export function requestApproval(label: string, { name }: McpTool): HostedCall {
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

type McpCallHandler = {
  requestId?: string
  run(args: string, context: RequestContext): Promise<CallOutcome>
}

function mcpCall(label: string, name: string, handler: McpCallHandler): HostedCall {
  const begin = (args: string) => ({
    type: 'mcp_call',
    server_label: label,
    name,
    arguments: args,
    status: 'in_progress',
    approval_request_id: handler.requestId ?? null,
    output: null,
    error: null,
  })
  const end = (args: string, outcome: CallOutcome): HostedOutcome => {
    const isCompleted = 'text' in outcome
    const status = isCompleted ? 'completed' : 'failed'
    return {
      item: { ...begin(args), status, ...(isCompleted ? { output: outcome.text } : outcome) },
      stage: status,
      result: isCompleted ? outcome.text : `The call failed: ${errorText(outcome.error)}`,
    }
  }
  return {
    isCounted: true,
    streamsArguments: true,
    stages: ['in_progress'],
    begin,
    run: async (args, context) => end(args, await handler.run(args, context)),
    refuse: (args, reason) => end(args, { error: invalidParams(reason) }),
  }
}

async function runTool(
  { session, sanitize: show }: ServerConnection,
  { tool, args, signal }: { tool: McpTool; args: string; signal: AbortSignal },
): Promise<CallOutcome> {
  const values = args.trim() === '' ? {} : parseJson(args)
  if (!isRecord(values)) return { error: invalidParams('The arguments are not a JSON object.') }
  const outcome = await session.call(tool, values, signal)
  return 'text' in outcome
    ? { text: show(outcome.text) }
    : { error: sanitizeError(outcome.error, show) }
}

export function sanitizeError(
  error: McpCallError,
  show: ServerConnection['sanitize'],
): McpCallError {
  if (error.type !== 'mcp_tool_execution_error') return { ...error, message: show(error.message) }
  const content = error.content.map(({ text }) => ({ type: 'text' as const, text: show(text) }))
  return { ...error, content }
}

/** A JSON-RPC "invalid params" error. */
function invalidParams(message: string): McpCallError {
  return { type: 'mcp_protocol_error', code: -32_602, message }
}

/** Shorter secrets would match unrelated text. */
const secretCharsMin = 8

/** Redacts the secrets that were sent to the server, and truncates texts. */
export function createSanitizer(
  secrets: readonly string[],
  charsMax: number,
): ServerConnection['sanitize'] {
  const redactable = secrets.filter((secret) => secret.length >= secretCharsMin)
  return (text) => {
    const redacted = redactable.reduce(
      (rest, secret) => rest.replaceAll(secret, '[redacted]'),
      text,
    )
    return truncateText(redacted, charsMax)
  }
}

function truncateText(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text
  return `${text.slice(0, charsMax)}\n[Truncated: the output is longer than ${charsMax} characters.]`
}
