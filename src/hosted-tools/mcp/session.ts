import type { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import { describeFailure, type McpCallError } from './call-error.ts'
import type { McpTool } from './request.ts'
import type { McpServer } from './servers.ts'

/**
 * The session of one response with one server. It connects on first use. Secrets that were sent to the
 * server are redacted in its results and errors, and both are truncated.
 */
export type McpSession = {
  list(signal: AbortSignal): Promise<ListOutcome>
  call(tool: McpTool, args: JsonObject, signal: AbortSignal): Promise<CallOutcome>
  /** Aborts running requests and ends the session at the server. */
  close(): void
}

export type ListOutcome = { tools: readonly McpTool[] } | { error: McpCallError }
export type CallOutcome = { text: string } | { error: McpCallError }

type SessionLimits = {
  readonly listMs: number
  readonly callMs: number
  readonly outputCharsMax: number
}

/** The most tools of one server, and the longest list in characters. */
const toolsMax = 512
const listCharsMax = 1_048_576
/** Reconnects of an interrupted stream, and the longest delay that a server may request. */
const reconnectsMax = 2
const reconnectMsMax = 5_000

type Sdk = typeof import('@modelcontextprotocol/client')
type Connection = { client: Client; transport: StreamableHTTPClientTransport }

export function createMcpSession(server: McpServer, limits: SessionLimits): McpSession {
  const sanitize = createSanitizer(server.secrets, limits.outputCharsMax)
  const closing = new AbortController()
  let connection: Promise<Connection> | null = null

  /** One connection for all calls; after a failure, the next call tries again. */
  const connected = (sdk: Sdk) => {
    connection ??= connect(sdk, server, { signal: closing.signal, timeout: limits.listMs }).catch(
      (error: unknown) => {
        connection = null
        throw error
      },
    )
    return connection
  }
  /** Returns failures as outcomes; only an abort is thrown. */
  const attempt = async <T>(signal: AbortSignal, send: (client: Client) => Promise<T>) => {
    // Loaded on demand, because it is large and rarely needed.
    const sdk = await import('@modelcontextprotocol/client')
    try {
      const { client } = await connected(sdk)
      return await send(client)
    } catch (error) {
      signal.throwIfAborted()
      const failure = describeFailure(error, sdk)
      return { error: { ...failure, message: sanitize(failure.message) } }
    }
  }
  return {
    list: (signal) =>
      attempt(signal, async (client) => {
        return { tools: await listTools(client, { signal, timeout: limits.listMs }) }
      }),
    call: (tool, args, signal) =>
      attempt(signal, async (client) => {
        const timeout = limits.callMs
        const { text, isError } = await callTool(client, { tool, args, signal, timeout })
        if (!isError) return { text: sanitize(text) }
        const content = [{ type: 'text' as const, text: sanitize(text) }]
        return { error: { type: 'mcp_tool_execution_error' as const, content } }
      }),
    close() {
      closing.abort()
      void connection?.then((open) => closeSession(open, server)).catch(() => {})
    },
  }
}

async function connect(
  sdk: Sdk,
  { url, headers, fetch }: McpServer,
  limits: RequestLimits,
): Promise<Connection> {
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
    { versionNegotiation: { mode: 'auto', probe: { timeoutMs: limits.timeout } } },
  )
  // Errors outside a request are ignored: servers send unsolicited messages.
  client.onerror = () => {}
  try {
    await client.connect(transport, limits)
    limits.signal.throwIfAborted()
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
) {
  const { name, inputSchema } = tool
  const result = await client.callTool(
    { name, arguments: args },
    // The definition avoids a list request, and validation of the output by the server's schema.
    {
      signal,
      timeout,
      maxTotalTimeout: timeout,
      toolDefinition: { name, inputSchema: { ...inputSchema, type: 'object' } },
    },
  )
  const text = readToolContent(result.content, result.structuredContent)
  return { text, isError: result.isError === true }
}

/** Ends the session at the server by a separate request, since those of the transport are aborted. */
async function closeSession({ client, transport }: Connection, server: McpServer): Promise<void> {
  const { sessionId, protocolVersion } = transport
  await client.close()
  if (sessionId === undefined) return
  const headers = {
    ...server.headers,
    'mcp-session-id': sessionId,
    ...(protocolVersion === undefined ? {} : { 'mcp-protocol-version': protocolVersion }),
  }
  const response = await server.fetch(server.url, { method: 'DELETE', headers })
  await response.body?.cancel()
}

/** The result of a tool as text for the model, with a placeholder for other content. */
function readToolContent(content: readonly unknown[], structured: unknown): string {
  const texts = content.filter(isRecord).map(readBlock)
  if (texts.length === 0 && structured !== undefined) return JSON.stringify(structured)
  return texts.join('\n')
}

function readBlock(block: JsonObject): string {
  const { type, text, mimeType } = block
  switch (type) {
    case 'text':
      return String(text)
    case 'image':
    case 'audio':
      return `[${type} of type ${String(mimeType)}, not shown]`
    case 'resource':
      return readResource(asRecord(block['resource']))
    case 'resource_link':
      return `[resource ${String(block['name'])}: ${String(block['uri'])}]`
    default:
      return `[content of type ${String(type)}, not shown]`
  }
}

function readResource({ uri, text }: JsonObject): string {
  return typeof text === 'string' ? text : `[resource ${String(uri)}, not shown]`
}

/** Shorter secrets would match unrelated text. */
const secretCharsMin = 8

/** Redacts the secrets that were sent to the server, and truncates texts. */
function createSanitizer(secrets: readonly string[], charsMax: number): (text: string) => string {
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
