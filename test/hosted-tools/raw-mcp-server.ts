import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'

/** A hand-written server of the older protocol, which can violate it in every way. */
export type RawMcp = {
  readonly url: string
  /** `POST tools/call`, `GET`, `DELETE`, each with its session. */
  readonly log: readonly string[]
  stop(): Promise<void>
}

/** The response to one message; undefined: a valid one. */
export type RawAnswer = (
  message: JsonObject,
  request: Request,
) => Response | undefined | Promise<Response>

export async function serveRawMcp(
  answer: RawAnswer = () => undefined,
  form: 'json' | 'sse' = 'json',
): Promise<RawMcp> {
  const log: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const message = parseJson(await request.text())
      const method = isRecord(message) ? ` ${message['method']}` : ''
      log.push(`${request.method}${method} ${request.headers.get('mcp-session-id') ?? '-'}`)
      if (!isRecord(message))
        return new Response(null, { status: request.method === 'GET' ? 405 : 200 })
      return (await answer(message, request)) ?? properAnswer(message, form)
    },
  })
  return { url: `http://127.0.0.1:${server.port}/mcp`, log, stop: () => server.stop(true) }
}

function properAnswer(message: JsonObject, form: 'json' | 'sse'): Response {
  const { id, method } = message
  if (id === undefined) return new Response(null, { status: 202 })
  switch (method) {
    case 'initialize':
      return say({ id, result: initialized }, form, { 'mcp-session-id': 's1' })
    case 'tools/list':
      return say(
        { id, result: { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] } },
        form,
      )
    case 'tools/call':
      return say({ id, result: { content: [{ type: 'text', text: 'echoed' }] } }, form)
    default:
      return say({ id, error: { code: -32_601, message: 'no such method' } }, form)
  }
}

const initialized = {
  protocolVersion: '2025-06-18',
  capabilities: { tools: {} },
  serverInfo: { name: 'raw', version: '1' },
}

export function say(
  answer: JsonObject,
  form: 'json' | 'sse' = 'json',
  headers: Record<string, string> = {},
): Response {
  const body = JSON.stringify({ jsonrpc: '2.0', ...answer })
  return form === 'json'
    ? new Response(body, { headers: { 'content-type': 'application/json', ...headers } })
    : new Response(`event: message\ndata: ${body}\n\n`, {
        headers: { 'content-type': 'text/event-stream', ...headers },
      })
}
