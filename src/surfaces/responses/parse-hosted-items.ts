import { quote } from '#api/read-object.ts'
import { type ApprovedCall, type McpTool, mcpToolName } from '#hosted-tools/mcp/request.ts'
import { webSearchName } from '#hosted-tools/web-search/request.ts'
import { readEarlierResults, renderResults } from '#hosted-tools/web-search/results.ts'
import type { RequestItem } from '#inference/request.ts'
import { asRecord, isRecord } from '#lib/json.ts'
import type { StoredItem } from '#responses/response.ts'
import { fileSearchName } from '#retrieval/file-search/file-search.ts'
import {
  createPassageRegistry,
  type Passage,
  type PassageRegistry,
} from '#retrieval/file-search/passages.ts'
import { readEarlierSearch } from '#retrieval/file-search/search-call.ts'
import { invalidField, readObject } from './read-object.ts'
import {
  fileSearchCallItem,
  mcpApprovalRequestItem,
  mcpApprovalResponseItem,
  mcpCallItem,
  mcpListedTool,
  mcpListItem,
} from './schema/input-items.ts'

const noPassages: readonly Passage[] = []

type ApprovalRequest = ApprovedCall & { state: 'pending' | 'approved' | 'settled' }

/**
 * Reads the items of tools that the gateway runs. A call with its result becomes a function call with
 * its output for every upstream, as does a call that waits for approval.
 */
export class HostedItems {
  readonly #lists = new Map<string, readonly McpTool[]>()
  readonly #requests = new Map<string, ApprovalRequest>()
  /** Created with the first search. */
  #passages: PassageRegistry | null = null

  /** The items for the model; null if the type is not that of a hosted item. */
  take(item: StoredItem, path: string): readonly RequestItem[] | null {
    const taken = this.#take(item, path)
    if (item.type !== 'mcp_call' && isModelOutput(item)) this.#expireApprovals()
    return taken
  }

  /** Completes every call with an output, and returns the calls that may run now. */
  finish(items: readonly RequestItem[]) {
    const approved: ApprovedCall[] = []
    return {
      items: this.#requests.size === 0 ? items : this.#completeCalls(items, approved),
      mcpHistory: { lists: this.#lists, approved },
      /** The passages that searches found, by number. */
      found: this.#passages?.all() ?? noPassages,
    }
  }

  /** Adds an output to every call without one, and the calls that may run now to `approved`. */
  #completeCalls(items: readonly RequestItem[], approved: ApprovedCall[]): readonly RequestItem[] {
    const completed = [...items]
    for (const { state, ...request } of this.#requests.values()) {
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
    return completed
  }

  #take(item: StoredItem, path: string): readonly RequestItem[] | null {
    switch (item.type) {
      case 'mcp_list_tools':
        this.#takeList(item, path)
        return []
      case 'mcp_call':
        return this.#takeCall(item, path)
      case 'mcp_approval_request':
        return this.#takeRequest(item, path)
      case 'mcp_approval_response':
        return this.#takeResponse(item, path)
      case 'file_search_call':
        return this.#takeSearch(item, path)
      case 'web_search_call':
        return takeWebSearch(item)
      default:
        return null
    }
  }

  #takeList(item: StoredItem, path: string): void {
    const { server_label: label, tools, error } = readObject(mcpListItem, item, path)
    // A failed list is requested again.
    if (error !== undefined || tools.length === 0) return
    const read = tools.map((tool, index): McpTool => {
      const listed = readObject(mcpListedTool, tool, `${path}.tools[${index}]`)
      const { name, description = null, input_schema: inputSchema, annotations = null } = listed
      return { name, description, inputSchema, annotations }
    })
    this.#lists.set(label, read)
  }

  #takeCall(item: StoredItem, path: string): RequestItem[] {
    const call = readObject(mcpCallItem, item, path)
    const request = this.#requests.get(call.approval_request_id ?? '')
    const text = call.output ?? describeError(call.error)
    if (request !== undefined && request.state !== 'settled') {
      request.state = 'settled'
      return [result(request.requestId, text)]
    }
    const { server_label: label, name, arguments: args } = call
    return [callItem(item.id, { label, name, args }), result(item.id, text)]
  }

  #takeRequest(item: StoredItem, path: string): RequestItem[] {
    const request = readObject(mcpApprovalRequestItem, item, path)
    if (this.#requests.has(item.id)) return []
    const { server_label: label, name, arguments: args } = request
    const call = { requestId: item.id, label, name, args }
    this.#requests.set(item.id, { ...call, state: 'pending' })
    return [callItem(item.id, call)]
  }

  #takeResponse(item: StoredItem, path: string): RequestItem[] {
    const response = readObject(mcpApprovalResponseItem, item, path)
    const { approval_request_id: id, approve, reason } = response
    const request = this.#requests.get(id)
    if (request === undefined) {
      const param = `${path}.approval_request_id`
      throw invalidField(param, `is ${quote(id)}, but no earlier approval request has this id`)
    }
    if (request.state === 'settled') return []
    request.state = approve ? 'approved' : 'settled'
    return approve ? [] : [result(id, refusalText(reason))]
  }

  /** The model sees an earlier search as a call of the tool. */
  #takeSearch(item: StoredItem, path: string): RequestItem[] {
    const { queries = [], results } = readObject(fileSearchCallItem, item, path)
    this.#passages ??= createPassageRegistry()
    const search = readEarlierSearch({ queries, results }, this.#passages)
    return [functionCall(item.id, fileSearchName, search.args), result(item.id, search.result)]
  }

  /** An approval expires with the next output of the model. */
  #expireApprovals(): void {
    for (const request of this.#requests.values()) {
      if (request.state === 'approved') request.state = 'pending'
    }
  }
}

/** A web search that the gateway ran, if its results were kept; null for one of an upstream. */
function takeWebSearch({ id, action, results }: StoredItem): RequestItem[] | null {
  if (!Array.isArray(results)) return null
  const args = JSON.stringify({ query: asRecord(action)['query'] })
  const text = renderResults(readEarlierResults(results))
  return [functionCall(id, webSearchName, args), result(id, text)]
}

function isModelOutput({ type, role }: StoredItem): boolean {
  if (type === 'message') return role === 'assistant'
  return type !== 'mcp_approval_response' && !type.endsWith('_output')
}

function isCall(item: RequestItem, callId: string): boolean {
  return item.type === 'tool-call' && item.callId === callId
}

function callItem(
  callId: string,
  { label, name, args }: Pick<ApprovedCall, 'label' | 'name' | 'args'>,
): RequestItem {
  return functionCall(callId, mcpToolName(label, name), args)
}

function functionCall(callId: string, name: string, args: string): RequestItem {
  return { type: 'tool-call', callId, name, form: 'function', arguments: args }
}

function result(callId: string, text: string): RequestItem {
  return { type: 'tool-result', callId, form: 'function', parts: [{ type: 'text', text }] }
}

function refusalText(reason: string | undefined): string {
  const refusal = 'The user did not approve this call.'
  return reason === undefined ? refusal : `${refusal} ${reason}`
}

function describeError(error: unknown): string {
  if (error === undefined) return 'The call did not finish.'
  const { message, content } = isRecord(error) ? error : { message: error, content: undefined }
  const text = typeof message === 'string' ? message : JSON.stringify(content ?? error)
  return `The call failed: ${text}`
}
