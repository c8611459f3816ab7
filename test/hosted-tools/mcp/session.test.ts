import { afterEach, expect, test } from 'bun:test'
import type { McpTool } from '#hosted-tools/mcp/request.ts'
import { createMcpSession, type McpSession } from '#hosted-tools/mcp/session.ts'
import { AppError } from '#lib/errors.ts'
import { createCheckedFetch } from '#outbound/checked-fetch.ts'
import { resolveHost } from '#outbound/resolve.ts'
import { type ServedMcp, serveMcp } from '#test/hosted-tools/mcp-server.ts'
import { type RawAnswer, type RawMcp, say, serveRawMcp } from '#test/hosted-tools/raw-mcp-server.ts'
import { eventually } from '#test/support/eventually.ts'

const open: { close?(): void; stop?(): Promise<void> }[] = []

afterEach(async () => {
  for (const { close, stop } of open.splice(0).reverse()) {
    close?.()
    await stop?.()
  }
})

function connect(url: string, limits: { listMs?: number; callMs?: number } = {}): McpSession {
  const policy = { hosts: ['*'], portsAllowed: [], private: true, timeoutMs: 60_000 }
  const server = {
    url: new URL(url),
    headers: { authorization: 'Bearer x' },
    secrets: [],
    fetch: createCheckedFetch({ ...policy, bodyBytesMax: 50_000 }, { fetch, resolve: resolveHost }),
  }
  const session = createMcpSession(server, {
    listMs: 5_000,
    callMs: 5_000,
    outputCharsMax: 100_000,
    ...limits,
  })
  open.push(session)
  return session
}

async function serve(): Promise<ServedMcp> {
  const server = await serveMcp()
  open.push({ stop: server.stop })
  return server
}

async function serveRaw(answer?: RawAnswer, form?: 'json' | 'sse'): Promise<RawMcp> {
  const server = await serveRawMcp(answer, form)
  open.push({ stop: server.stop })
  return server
}

const { signal } = new AbortController()
const tool = (name: string): McpTool => ({
  name,
  description: null,
  inputSchema: { type: 'object' },
  annotations: null,
})
const call = (session: McpSession, name: string, args = {}) =>
  session.call(tool(name), args, signal)

test('a server lists its tools and runs them over one session', async () => {
  const server = await serve()
  const session = connect(server.url)
  const listed = await session.list(signal)
  expect('tools' in listed ? listed.tools.map(({ name }) => name) : listed).toContain('get_weather')
  expect(await call(session, 'get_weather', { city: 'Oslo' })).toEqual({ text: 'rain in Oslo' })
  expect(server.requests.every(({ headers }) => headers.get('authorization') === 'Bearer x')).toBe(
    true,
  )
  expect(server.requests.filter(({ body }) => body.includes('server/discover'))).toHaveLength(1)
})

test('every tool result becomes one text', async () => {
  const session = connect((await serve()).url)
  expect(await call(session, 'picture')).toEqual({
    text: 'Look:\n[image of type image/png, not shown]',
  })
  expect(await call(session, 'numbers')).toEqual({ text: '{"sum":3}' })
})

test('a failed tool keeps its error text', async () => {
  const session = connect((await serve()).url)
  expect(await call(session, 'fail')).toEqual({
    error: { type: 'mcp_tool_execution_error', content: [{ type: 'text', text: 'it broke' }] },
  })
})

for (const form of ['json', 'sse'] as const) {
  test(`a server of the older protocol works (${form}), and its session is ended`, async () => {
    const server = await serveRaw(undefined, form)
    const session = connect(server.url)
    const [listed, called] = await Promise.all([session.list(signal), call(session, 'echo')])
    expect(listed).toMatchObject({ tools: [{ name: 'echo' }] })
    expect(called).toEqual({ text: 'echoed' })
    session.close()
    await eventually('the session is ended', () => server.log.includes('DELETE s1'))
    expect(server.log.filter((line) => line.includes('initialize '))).toHaveLength(1)
  })
}

test('pages of a list are read up to a limit', async () => {
  let pages = 0
  const { url } = await serveRaw((message) => {
    if (message['method'] !== 'tools/list') return undefined
    const tools = [{ name: `tool_${pages++}`, inputSchema: { type: 'object' } }]
    return say({ id: message['id'], result: { tools, nextCursor: `page ${pages}` } })
  })
  const listed = await connect(url).list(signal)
  expect('tools' in listed ? listed.tools.length : listed).toBe(512)
})

const faults: Readonly<Record<string, { says: RawAnswer; error: object }>> = {
  'answers with an HTTP error': {
    says: () => new Response('the secret reason', { status: 503 }),
    error: { type: 'http_error', code: 503, message: 'The server responded with HTTP status 503.' },
  },
  'wants other credentials': {
    says: () => new Response('', { status: 401 }),
    error: { type: 'http_error', code: 401, message: 'The server responded with HTTP status 401.' },
  },
  redirects: {
    says: () => Response.redirect('http://127.0.0.1:1/', 307),
    error: {
      type: 'http_error',
      code: 502,
      message: 'The server responded with a redirect, which is not followed.',
    },
  },
  'answers with an error of the protocol': {
    says: ({ id }) => say({ id, error: { code: -32_602, message: 'no such tool' } }),
    error: { type: 'mcp_protocol_error', code: -32_602, message: 'no such tool' },
  },
  'answers with a web page': {
    says: () => new Response('<html>', { headers: { 'content-type': 'text/html' } }),
    error: { type: 'mcp_protocol_error', code: -32_603 },
  },
  'answers with no JSON': {
    says: () => new Response('{"half', { headers: { 'content-type': 'application/json' } }),
    error: { type: 'mcp_protocol_error', code: -32_603 },
  },
  'answers with other JSON': {
    says: ({ id }) => say({ id, result: { content: 'words' } }),
    error: { type: 'mcp_protocol_error', code: -32_603 },
  },
  'answers with more than may be': {
    says: ({ id }) =>
      say({ id, result: { content: [{ type: 'text', text: 'x'.repeat(60_000) }] } }),
    error: {
      type: 'http_error',
      code: 502,
      message: 'The server sent more than the limit of 50000 bytes.',
    },
  },
}

for (const [what, { says, error }] of Object.entries(faults)) {
  test(`a failed call, where a server ${what}`, async () => {
    const server = await serveRaw((message, request) =>
      message['method'] === 'tools/call' ? says(message, request) : undefined,
    )
    expect(await call(connect(server.url), 'echo')).toMatchObject({ error })
  })
}

const streams: Readonly<Record<string, (id: unknown) => string>> = {
  'ends without an answer': () => ': nothing\n\n',
  'is longer than may be': (id) => `data: {"id":${id},"x":"${'x'.repeat(60_000)}"}\n\n`,
  'ends after a promise to go on': () => 'id: 1\nretry: 1000000\ndata: \n\n',
}

for (const [what, body] of Object.entries(streams)) {
  test(`a failed call, where the stream of a server ${what}`, async () => {
    const server = await serveRaw(({ method, id }) => {
      if (method !== 'tools/call') return undefined
      return new Response(body(id), { headers: { 'content-type': 'text/event-stream' } })
    })
    const answer = await call(connect(server.url, { callMs: 200 }), 'echo')
    expect(answer).toHaveProperty('error')
  })
}

test('a server that violates the protocol cannot be listed', async () => {
  const page = () => new Response('<html>', { headers: { 'content-type': 'text/html' } })
  expect(await connect((await serveRaw(page)).url).list(signal)).toHaveProperty('error')
  expect(await connect('http://127.0.0.1:1/mcp').list(signal)).toEqual({
    error: { type: 'http_error', code: 502, message: 'The server could not be reached.' },
  })
})

test('a call that times out fails, and the next one succeeds', async () => {
  const server = await serve()
  const session = connect(server.url, { callMs: 100 })
  expect(await call(session, 'slow', { city: 'Oslo' })).toEqual({
    error: { type: 'http_error', code: 504, message: 'The server did not respond in time.' },
  })
  expect(await call(session, 'get_weather', { city: 'Rome' })).toEqual({ text: 'rain in Rome' })
})

test('a server that does not respond to the handshake times out', async () => {
  const { url } = await serveRaw(() => new Promise(() => {}))
  expect(await connect(url, { listMs: 100 }).list(signal)).toMatchObject({
    error: { type: 'http_error', code: 504 },
  })
})

test('an abort ends the call immediately and cancels it at the server', async () => {
  const server = await serve()
  const session = connect(server.url)
  const caller = new AbortController()
  const work = session.call(tool('slow'), { city: 'Oslo' }, caller.signal)
  await eventually('the tool runs', () => server.slow.running === 1)
  caller.abort(new AppError('client_closed', 'gone'))
  expect(await work.catch((error) => error.kind)).toBe('client_closed')
  session.close()
  await eventually('the server sees it', () => server.slow.aborted === 1)
})

test('closing aborts running requests, over the older protocol too', async () => {
  let isGone = false
  const server = await serveRaw((message, request) => {
    if (message['method'] !== 'tools/call') return undefined
    request.signal.addEventListener('abort', () => {
      isGone = true
    })
    return new Promise(() => {})
  })
  const session = connect(server.url)
  const work = call(session, 'echo')
  await eventually('the call is under way', () =>
    server.log.some((line) => line.includes('tools/call')),
  )
  session.close()
  expect(await work).toHaveProperty('error')
  await eventually('the server sees it', () => isGone)
})
