import { quote } from '#api/read-object.ts'
import type { ApprovedCall, McpHistory, McpTool } from '#hosted-tools/mcp/request.ts'
import { mcpToolName } from '#hosted-tools/mcp/request.ts'
import type { RequestItem } from '#inference/request.ts'
import { isRecord } from '#lib/json.ts'
import type { Passage } from '#retrieval/file-search/passages.ts'
import { createFileSearchItems } from './parse-file-search.ts'
import { invalidField, readObject } from './read-object.ts'
import {
  mcpApprovalRequestItem,
  mcpApprovalResponseItem,
  mcpCallItem,
  mcpListedTool,
  mcpListItem,
} from './schema/input-items.ts'

/**
 * Reads the items of tools that the gateway runs. A call with its result becomes a function call with
 * its output for every upstream, as does a call that waits for approval.
 */
export type HostedItems = {
  /** The items for the model; null if the type is not that of a hosted item. */
  take(type: string, value: unknown, path: string): readonly RequestItem[] | null
  /** Completes every call with an output, and returns the calls that may run now. */
  finish(items: readonly RequestItem[]): { items: readonly RequestItem[]; history: McpHistory }
  /** The passages that searches found, by number. */
  found(): readonly Passage[]
}

type Request = ApprovedCall & { state: 'pending' | 'approved' | 'settled' }

export function createHostedItems(): HostedItems {
  const lists = new Map<string, readonly McpTool[]>()
  const requests = new Map<string, Request>()
  const searches = createFileSearchItems()

  const takeCall = (value: unknown, path: string): RequestItem[] => {
    const call = readObject(mcpCallItem, value, path)
    const request = requests.get(call.approval_request_id ?? '')
    const text = call.output ?? describeError(call.error)
    if (request !== undefined && request.state !== 'settled') {
      request.state = 'settled'
      return [result(request.requestId, text)]
    }
    const callId = idOf(value)
    const { server_label: label, name, arguments: args } = call
    return [callItem(callId, { label, name, args }), result(callId, text)]
  }
  const takeRequest = (value: unknown, path: string): RequestItem[] => {
    const {
      server_label: label,
      name,
      arguments: args,
    } = readObject(mcpApprovalRequestItem, value, path)
    const id = idOf(value)
    if (requests.has(id)) return []
    const call = { requestId: id, label, name, args }
    requests.set(id, { ...call, state: 'pending' })
    return [callItem(id, call)]
  }
  const takeResponse = (value: unknown, path: string): RequestItem[] => {
    const {
      approval_request_id: id,
      approve,
      reason,
    } = readObject(mcpApprovalResponseItem, value, path)
    const request = requests.get(id)
    if (request === undefined) {
      const param = `${path}.approval_request_id`
      throw invalidField(param, `is ${quote(id)}, but no earlier approval request has this id`)
    }
    if (request.state === 'settled') return []
    request.state = approve ? 'approved' : 'settled'
    return approve ? [] : [result(id, refusalText(reason))]
  }
  const take = (type: string, value: unknown, path: string): RequestItem[] | null => {
    switch (type) {
      case 'mcp_list_tools':
        takeList(value, path, lists)
        return []
      case 'mcp_call':
        return takeCall(value, path)
      case 'mcp_approval_request':
        return takeRequest(value, path)
      case 'mcp_approval_response':
        return takeResponse(value, path)
      case 'file_search_call':
        return searches.take(idOf(value), value, path)
      default:
        return null
    }
  }
  return {
    take(type, value, path) {
      const taken = take(type, value, path)
      if (type !== 'mcp_call' && isModelOutput(type, value)) expireApprovals(requests)
      return taken
    },
    finish: (items) => finish(items, { lists, requests }),
    found: searches.found,
  }
}

/** An approval expires with the next output of the model. */
function expireApprovals(requests: ReadonlyMap<string, Request>): void {
  for (const request of requests.values()) {
    if (request.state === 'approved') request.state = 'pending'
  }
}

function isModelOutput(type: string, value: unknown): boolean {
  if (type === 'message') return isRecord(value) && value['role'] === 'assistant'
  return type !== 'mcp_approval_response' && !type.endsWith('_output')
}

function finish(
  items: readonly RequestItem[],
  { lists, requests }: { lists: McpHistory['lists']; requests: ReadonlyMap<string, Request> },
): ReturnType<HostedItems['finish']> {
  const completed = [...items]
  const approved: ApprovedCall[] = []
  for (const { state, ...request } of requests.values()) {
    if (state === 'settled') continue
    let at = completed.findLastIndex((item) => isCall(item, request.requestId))
    if (state === 'approved') {
      // The call may have been removed by a compaction, but its output requires it.
      if (at === -1) completed.push(callItem(request.requestId, request))
      approved.push(request)
      continue
    }
    if (at === -1) continue
    while (completed[at]?.type === 'tool-call') at++
    completed.splice(at, 0, result(request.requestId, 'The call was not approved.'))
  }
  return { items: completed, history: { lists, approved } }
}

function isCall(item: RequestItem, callId: string): boolean {
  return item.type === 'tool-call' && item.callId === callId
}

function takeList(value: unknown, path: string, lists: Map<string, readonly McpTool[]>): void {
  const { server_label: label, tools, error } = readObject(mcpListItem, value, path)
  // A failed list is requested again.
  if (error !== undefined || tools.length === 0) return
  const read = tools.map((tool, index): McpTool => {
    const listed = readObject(mcpListedTool, tool, `${path}.tools[${index}]`)
    const { name, description = null, input_schema: inputSchema, annotations = null } = listed
    return { name, description, inputSchema, annotations }
  })
  lists.set(label, read)
}

function callItem(
  callId: string,
  { label, name, args }: Pick<ApprovedCall, 'label' | 'name' | 'args'>,
): RequestItem {
  return {
    type: 'tool-call',
    callId,
    name: mcpToolName(label, name),
    form: 'function',
    arguments: args,
  }
}

function result(callId: string, text: string): RequestItem {
  return { type: 'tool-result', callId, form: 'function', parts: [{ type: 'text', text }] }
}

function refusalText(reason: string | undefined): string {
  const refusal = 'The user did not approve this call.'
  return reason === undefined ? refusal : `${refusal} ${reason}`
}

/** Every input item has an id: the one that was sent, or a generated one. */
function idOf(value: unknown): string {
  return isRecord(value) && typeof value['id'] === 'string' ? value['id'] : ''
}

function describeError(error: unknown): string {
  if (error === undefined) return 'The call did not finish.'
  const { message, content } = isRecord(error) ? error : { message: error, content: undefined }
  const text = typeof message === 'string' ? message : JSON.stringify(content ?? error)
  return `The call failed: ${text}`
}
