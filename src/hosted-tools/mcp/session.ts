import type { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { JsonObject } from '#lib/json.ts'
import type { CheckedFetch } from '#outbound/checked-fetch.ts'
import { describeFailure, type McpCallError } from './call-error.ts'
import type { McpTool } from './request.ts'
import { readToolContent } from './result.ts'

/** One server, for one response. It connects when it is first asked for something. */
export type McpSession = {
  list(signal: AbortSignal): Promise<ListOutcome>
  call(tool: McpTool, args: JsonObject, signal: AbortSignal): Promise<CallOutcome>
  /** Ends what is under way at once, and the session at the server. */
  close(): void
}

export type ListOutcome = { tools: readonly McpTool[] } | { error: McpCallError }
export type CallOutcome = { text: string } | { error: McpCallError }

export type SessionOptions = {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly fetch: CheckedFetch
  readonly listMs: number
  readonly callMs: number
}

/** The most tools of one server, and the most text that describes them, in characters. */
const toolsMax = 512
const listCharsMax = 1_048_576
/** How often a stream that broke off is taken up again, and how long a server may put that off. */
const reconnectsMax = 2
const reconnectMsMax = 5_000

type Sdk = typeof import('@modelcontextprotocol/client')
type Connection = { client: Client; transport: StreamableHTTPClientTransport }

export function createMcpSession(options: SessionOptions): McpSession {
  const closing = new AbortController()
  let connection: Promise<Connection> | null = null

  /** One connection for all calls; a failed one is tried again by the next call. */
  const connected = (sdk: Sdk) => {
    connection ??= connect(sdk, options, closing.signal).catch((error: unknown) => {
      connection = null
      throw error
    })
    return connection
  }
  /** Failures are outcomes; only an abort is thrown. */
  const attempt = async <T>(signal: AbortSignal, work: (client: Client) => Promise<T>) => {
    // Most processes never need it, and it is large.
    const sdk = await import('@modelcontextprotocol/client')
    try {
      const { client } = await connected(sdk)
      return await work(client)
    } catch (error) {
      signal.throwIfAborted()
      return { error: describeFailure(error, sdk) }
    }
  }
  return {
    list: (signal) =>
      attempt(signal, async (client) => {
        return { tools: await listTools(client, { signal, timeout: options.listMs }) }
      }),
    call: (tool, args, signal) =>
      attempt(signal, (client) =>
        callTool(client, { tool, args, signal, timeout: options.callMs }),
      ),
    close() {
      closing.abort()
      void connection?.then((open) => end(open, options)).catch(() => {})
    },
  }
}

async function connect(
  sdk: Sdk,
  options: SessionOptions,
  signal: AbortSignal,
): Promise<Connection> {
  const { url, headers, fetch } = options
  const transport = new sdk.StreamableHTTPClientTransport(url, {
    requestInit: { headers },
    fetch,
    reconnectionOptions: {
      initialReconnectionDelay: 500,
      maxReconnectionDelay: reconnectMsMax,
      reconnectionDelayGrowFactor: 2,
      maxRetries: reconnectsMax,
    },
    reconnectionScheduler(reconnect, delayMs) {
      const timer = setTimeout(reconnect, Math.min(delayMs, reconnectMsMax))
      return () => clearTimeout(timer)
    },
  })
  const client = new sdk.Client(
    { name: 'sluice', version: '1' },
    { versionNegotiation: { mode: 'auto', probe: { timeoutMs: options.listMs } } },
  )
  // What a request cannot be told is told to nobody: servers say much that is no answer.
  client.onerror = () => {}
  try {
    await client.connect(transport, { signal, timeout: options.listMs })
    signal.throwIfAborted()
  } catch (error) {
    void client.close().catch(() => {})
    throw error
  }
  return { client, transport }
}

type RequestLimits = { signal: AbortSignal; timeout: number }

async function listTools(client: Client, limits: RequestLimits): Promise<McpTool[]> {
  if (client.getServerCapabilities()?.tools === undefined) return []
  const tools: McpTool[] = []
  let charsLeft = listCharsMax
  let cursor: string | undefined
  do {
    const params = cursor === undefined ? {} : { cursor }
    const page = await client.request({ method: 'tools/list', params }, limits)
    for (const { name, description = null, inputSchema, annotations = null } of page.tools) {
      const tool = { name, description, inputSchema, annotations }
      charsLeft -= JSON.stringify(tool).length
      if (tools.length >= toolsMax || charsLeft < 0) return tools
      tools.push(tool)
    }
    cursor = page.tools.length === 0 ? undefined : page.nextCursor
  } while (cursor !== undefined)
  return tools
}

async function callTool(
  client: Client,
  { tool, args, signal, timeout }: RequestLimits & { tool: McpTool; args: JsonObject },
): Promise<CallOutcome> {
  const { name, inputSchema } = tool
  const result = await client.callTool(
    { name, arguments: args },
    // The definition spares a list, and a check of the output that would run a foreign schema.
    {
      signal,
      timeout,
      maxTotalTimeout: timeout,
      toolDefinition: { name, inputSchema: { ...inputSchema, type: 'object' } },
    },
  )
  const text = readToolContent(result.content, result.structuredContent)
  if (result.isError !== true) return { text }
  return { error: { type: 'mcp_tool_execution_error', content: [{ type: 'text', text }] } }
}

/** The session at the server is ended by a request of its own, since the transport's are aborted. */
async function end({ client, transport }: Connection, options: SessionOptions): Promise<void> {
  const { sessionId, protocolVersion } = transport
  await client.close()
  if (sessionId === undefined) return
  const headers = {
    ...options.headers,
    'mcp-session-id': sessionId,
    ...(protocolVersion === undefined ? {} : { 'mcp-protocol-version': protocolVersion }),
  }
  const answer = await options.fetch(options.url, { method: 'DELETE', headers })
  await answer.body?.cancel()
}
