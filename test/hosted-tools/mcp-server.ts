import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'

/** A real MCP server on loopback, with a tool for every outcome of a call. */
export type ServedMcp = {
  readonly url: string
  /** Every HTTP request so far. */
  readonly requests: readonly { method: string; headers: Headers; body: string }[]
  /** The names of the tools that ran, in the order in which they began. */
  readonly calls: readonly string[]
  readonly slow: {
    /** Running calls of the slow tool, and their maximum. */
    running: number
    most: number
    aborted: number
    /** Ends all running slow calls. */
    release(): void
  }
  /** How often the tools were listed. */
  lists(): number
  stop(): Promise<void>
}

export async function serveMcp(): Promise<ServedMcp> {
  const requests: { method: string; headers: Headers; body: string }[] = []
  const calls: string[] = []
  const waiting = new Set<() => void>()
  const slow = {
    running: 0,
    most: 0,
    aborted: 0,
    release() {
      for (const go of waiting) go()
      waiting.clear()
    },
  }
  const handler = createMcpHandler(() => buildServer({ calls, slow, waiting }))
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { method, headers } = request
      requests.push({ method, headers, body: await request.clone().text() })
      return handler.fetch(request)
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}/mcp`,
    requests,
    calls,
    slow,
    lists: () => requests.filter(({ body }) => body.includes('"tools/list"')).length,
    async stop() {
      slow.release()
      await handler.close()
      await server.stop(true)
    },
  }
}

type World = { calls: string[]; slow: ServedMcp['slow']; waiting: Set<() => void> }

function buildServer({ calls, slow, waiting }: World): McpServer {
  const server = new McpServer({ name: 'test', version: '1' })
  const text = (words: string) => ({ content: [{ type: 'text' as const, text: words }] })
  const city = { inputSchema: z.object({ city: z.string() }) }

  server.registerTool(
    'get_weather',
    { description: 'The weather.', annotations: { readOnlyHint: true }, ...city },
    ({ city }) => {
      calls.push('get_weather')
      return text(`rain in ${city}`)
    },
  )
  const pages = [
    { url: 'https://tides.example.com/today', title: 'Tides', content: 'High water at 12:00.' },
    { url: 'https://other.example.org/', title: 'Other', snippet: 'Low water at 18:00.' },
  ]
  server.registerTool(
    'search',
    { description: 'Searches.', inputSchema: z.object({ q: z.string() }) },
    ({ q }) => {
      calls.push(`search ${q}`)
      if (q === 'broken') return { ...text('it broke'), isError: true }
      return text(q === 'plain' ? `See ${pages[0]?.url}.` : JSON.stringify({ results: pages }))
    },
  )
  server.registerTool('fail', { description: 'Fails.' }, () => {
    calls.push('fail')
    return { ...text('it broke'), isError: true }
  })
  server.registerTool('huge', { description: 'Says much.' }, () => text('x'.repeat(100_000)))
  server.registerTool('picture', { description: 'Shows.' }, () => ({
    content: [
      { type: 'text', text: 'Look:' },
      { type: 'image', data: 'aGVsbG8=', mimeType: 'image/png' },
    ],
  }))
  server.registerTool(
    'numbers',
    { description: 'Counts.', outputSchema: z.object({ sum: z.number() }) },
    () => ({ content: [], structuredContent: { sum: 3 } }),
  )
  server.registerTool('slow', { description: 'Waits.', ...city }, async ({ city }, context) => {
    calls.push(`slow ${city}`)
    slow.running++
    slow.most = Math.max(slow.most, slow.running)
    const { signal } = context.mcpReq
    await new Promise<void>((resolve) => {
      waiting.add(resolve)
      signal.addEventListener('abort', () => resolve())
    })
    slow.running--
    if (signal.aborted) slow.aborted++
    return text(`waited in ${city}`)
  })
  server.registerTool('echo_secret', { description: 'Leaks.' }, (context) => {
    const headers = context.http?.req?.headers
    return text(`I was sent ${headers?.get('authorization')}`)
  })
  return server
}
