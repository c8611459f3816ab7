import type { HostedToolItem } from '#inference/events.ts'
import type { HostedCall, HostedOutcome } from '#inference/tool-loop/hosted-tools.ts'
import { newId } from '#lib/id.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import { errorText } from './call-error.ts'
import type { McpTool } from './request.ts'
import type { CallOutcome, McpSession } from './session.ts'

type ToolCall = {
  readonly label: string
  readonly name: string
  readonly session: McpSession
  /** The approval request that allowed the call. */
  readonly requestId?: string
  /** The tool, or why it cannot be called. */
  findTool(signal: AbortSignal): Promise<McpTool | string>
}

/** A tool call, represented by an `mcp_call` item. */
export function callTool({ label, name, session, requestId, findTool }: ToolCall): HostedCall {
  const begin = (args: string) => ({
    type: 'mcp_call',
    server_label: label,
    name,
    arguments: args,
    status: 'in_progress',
    approval_request_id: requestId ?? null,
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
    async run(args, { signal }) {
      const tool = await findTool(signal)
      if (typeof tool === 'string') return end(args, invalidParams(tool))
      const values = args.trim() === '' ? {} : parseJson(args)
      return end(
        args,
        isRecord(values)
          ? await session.call(tool, values, signal)
          : invalidParams('The arguments are not a JSON object.'),
      )
    },
    refuse: (args, reason) => end(args, invalidParams(reason)),
  }
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

/** A JSON-RPC "invalid params" error. */
function invalidParams(message: string): CallOutcome {
  return { error: { type: 'mcp_protocol_error', code: -32_602, message } }
}
