import { errorText } from '#hosted-tools/mcp/call-error.ts'
import type { McpSession } from '#hosted-tools/mcp/session.ts'
import type { HostedToolItem } from '#inference/events.ts'
import type { FunctionTool } from '#inference/request.ts'
import type { HostedCall, HostedOutcome, HostedTools } from '#inference/tool-loop/hosted-tools.ts'
import { chooseFunction, freeName } from '#inference/tool-loop/own-function.ts'
import { asRecord, parseJson } from '#lib/json.ts'
import { type WebSearchRequest, type WebSearchTool, webSearchName } from './request.ts'
import { isAllowed, linkedPages, readResults, renderResults, type WebResult } from './results.ts'

/** The tool of an MCP server that searches. */
export type SearchServer = {
  readonly session: McpSession
  readonly tool: string
  /** The field of its input with the query. */
  readonly queryField: string
}

/** A longer query is refused. */
const queryCharsMax = 2_000

/** Codes of the Messages protocol; the Responses protocol has none. */
type ErrorCode = 'unavailable' | 'invalid_tool_input' | 'max_uses_exceeded' | 'query_too_long'

/** A web search for one request. `takenNames` are the names of the client's own tools. */
export function createWebSearch(
  { tool, choice }: WebSearchRequest,
  server: SearchServer,
  takenNames: ReadonlySet<string>,
): HostedTools {
  const name = tool === null || choice === 'forbidden' ? null : freeName(webSearchName, takenNames)
  let callsLeft = tool?.callsMax ?? Number.POSITIVE_INFINITY
  const takeCall = () => callsLeft-- > 0
  return {
    opening: [],
    definitions: () => (tool === null || name === null ? [] : [describe(name, tool)]),
    resolveToolChoice: (wanted) => (name === null ? wanted : chooseFunction(wanted, choice, name)),
    call: (called) =>
      tool === null || called !== name ? null : searchWeb(server, { tool, takeCall }),
    close: () => server.session.close(),
  }
}

function describe(name: string, { location }: WebSearchTool): FunctionTool {
  const where = location === null ? '' : ` The user is in: ${location}.`
  return {
    type: 'function',
    name,
    description: `Searches the web. Use it for facts that are recent or that you do not know.${where}`,
    parameters: {
      type: 'object',
      properties: { query: { type: 'string', description: 'The words to search for.' } },
      required: ['query'],
      additionalProperties: false,
    },
    strict: null,
  }
}

/** A search, represented by a `web_search_call` item with its `results`. */
function searchWeb(
  { session, tool, queryField }: SearchServer,
  given: { tool: WebSearchTool; takeCall: () => boolean },
): HostedCall {
  const begin = (args: string): HostedToolItem => {
    const query = queryIn(args)
    const action = { type: 'search', query, queries: [query] }
    return { type: 'web_search_call', status: 'in_progress', action }
  }
  const fail = (args: string, code: ErrorCode, reason: string): HostedOutcome => ({
    item: { ...begin(args), status: 'failed', error: { code, message: reason } },
    stage: 'failed',
    result: `The search failed: ${reason}`,
  })
  const end = (args: string, results: readonly WebResult[], result: string): HostedOutcome => {
    const { action, ...item } = begin(args)
    const sources = results.map(({ url }) => ({ type: 'url', url }))
    return {
      item: {
        ...item,
        status: 'completed',
        action: { ...asRecord(action), sources },
        results: results.map(({ url, title, text, age }) => ({ url, title, text, page_age: age })),
      },
      stage: 'completed',
      result,
    }
  }
  return {
    isCounted: true,
    streamsArguments: false,
    stages: ['in_progress', 'searching'],
    begin,
    refuse: (args, reason) => fail(args, 'unavailable', reason),
    async run(args, { signal }) {
      const query = queryIn(args)
      if (query.trim() === '') return fail(args, 'invalid_tool_input', '"query" must be a text.')
      if (query.length > queryCharsMax) {
        const reason = `The query may have at most ${queryCharsMax} characters.`
        return fail(args, 'query_too_long', reason)
      }
      if (!given.takeCall()) {
        const reason = 'This response may not search any more. Answer without.'
        return fail(args, 'max_uses_exceeded', reason)
      }
      const called = { name: tool, description: null, inputSchema: {}, annotations: null }
      const outcome = await session.call(called, { [queryField]: query }, signal)
      if ('error' in outcome) return fail(args, 'unavailable', errorText(outcome.error))
      const listed = readResults(outcome.text)
      const { domains } = given.tool
      if (domains.allowed.length + domains.blocked.length === 0) {
        const results = listed ?? linkedPages(outcome.text)
        return end(args, results, listed === null ? outcome.text : renderResults(listed))
      }
      if (listed === null) {
        const reason = 'The configured search tool returns no list, so domains cannot be selected.'
        return fail(args, 'unavailable', reason)
      }
      const allowed = listed.filter((result) => isAllowed(result, domains))
      return end(args, allowed, renderResults(allowed))
    },
  }
}

/** Models also write a list of queries; the first one counts. */
function queryIn(args: string): string {
  const { query, queries } = asRecord(parseJson(args))
  const [text] = [query, queries].flat().filter((each) => typeof each === 'string')
  return text ?? ''
}
