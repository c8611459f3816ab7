import { afterEach, expect, test } from 'bun:test'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { eventually } from '#test/support/eventually.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { readFrames } from '#test/support/response-frames.ts'
import { chatAnswer, nativeAnswer } from '#test/support/scripted-answers.ts'
import { type McpGateway, startMcpGateway } from './mcp-gateway.ts'

const started: { stop(): Promise<unknown> }[] = []

afterEach(async () => {
  for (const { stop } of started.splice(0).reverse()) await stop()
})

async function start(options: Parameters<typeof startMcpGateway>[0] = {}): Promise<McpGateway> {
  const world = await startMcpGateway(options)
  started.push(world)
  return world
}

/** A gateway with a server that calls the weather tool, under any name. */
async function startUpstream(
  api: 'chat' | 'responses' = 'chat',
): Promise<McpGateway & { upstream: ReplayUpstream }> {
  const upstream = await startReplayUpstream(({ body }) => {
    const tool = JSON.parse(body).tools?.at(-1)
    const offered = tool?.function?.name ?? tool?.name ?? 'get_weather'
    const answer = api === 'chat' ? chatAnswer(body) : nativeAnswer(body)
    return { body: answer.replaceAll('"get_weather"', JSON.stringify(offered)) }
  })
  started.push({ stop: upstream.stop })
  const world = await start({
    upstream: [{ url: upstream.baseUrl, api, models: ['upstream-name'] }],
    model: [{ name: 'chat', upstreams: ['upstream-0'], upstreamModel: 'upstream-name' }],
  })
  return { ...world, upstream }
}

const docs = { type: 'mcp', server_label: 'docs', require_approval: 'never' }
const weather = { ...docs, allowed_tools: ['get_weather'] }

async function ask({ gateway }: McpGateway, fields: object): Promise<JsonObject> {
  const httpResponse = await gateway.post('/v1/responses', {
    model: 'demo-tools',
    input: 'Hi',
    ...fields,
  })
  const body: unknown = await httpResponse.json()
  if (!isRecord(body)) throw new Error('no object')
  return body
}

const output = (response: JsonObject): JsonObject[] =>
  Array.isArray(response['output']) ? response['output'].filter(isRecord) : []
const types = (response: JsonObject) => output(response).map(({ type }) => type)

test('the demo model calls a remote tool and answers with its result', async () => {
  const response = await ask(await start(), { tools: [weather] })
  expect(types(response)).toEqual(['mcp_list_tools', 'mcp_call', 'message'])
  expect(output(response)[1]).toMatchObject({
    id: expect.stringMatching(/^mcp_/),
    server_label: 'docs',
    name: 'get_weather',
    status: 'completed',
    output: 'rain in demo',
    error: null,
  })
  expect(JSON.stringify(output(response)[2])).toContain('The tool returned: rain in demo')
})

test('the stream contains the list, each call, and only events that clients know', async () => {
  const { gateway } = await start()
  const body = { model: 'demo-tools', input: 'Hi', stream: true, tools: [weather] }
  const wire = await (await gateway.post('/v1/responses', body)).text()
  const names = readFrames(wire).map(({ type }) => type.replace('response.', ''))
  expect(names.slice(2, 13).filter((name) => !name.endsWith('delta'))).toEqual([
    'output_item.added',
    'mcp_list_tools.in_progress',
    'mcp_list_tools.completed',
    'output_item.done',
    'output_item.added',
    'mcp_call.in_progress',
    'mcp_call_arguments.done',
    'mcp_call.completed',
    'output_item.done',
  ])
})

test('a chat server gets the tool as a function and its result', async () => {
  const world = await startUpstream()
  const response = await ask(world, { model: 'chat', tools: [weather] })
  expect(types(response)).toEqual(['mcp_list_tools', 'mcp_call', 'message'])
  const [first, second] = world.upstream.requests
    .filter(({ method }) => method === 'POST')
    .map(({ body }) => JSON.parse(body))
  expect(first.tools).toMatchObject([{ function: { name: 'mcp__docs__get_weather' } }])
  expect(second.messages.at(-1)).toMatchObject({ role: 'tool', content: 'rain in Oslo' })
  expect(response['usage']).toMatchObject({ total_tokens: 10 })
})

test('a native server gets the tool as a function and its result', async () => {
  const world = await startUpstream('responses')
  const response = await ask(world, { model: 'chat', tools: [weather] })
  expect(types(response)).toEqual(['mcp_list_tools', 'mcp_call', 'message'])
  const [first, second] = world.upstream.requests
    .filter(({ method }) => method === 'POST')
    .map(({ body }) => JSON.parse(body))
  expect(first.tools).toMatchObject([{ type: 'function', name: 'mcp__docs__get_weather' }])
  expect(second.input.slice(-2)).toMatchObject([
    { type: 'function_call', name: 'mcp__docs__get_weather' },
    { type: 'function_call_output', output: 'rain in Oslo' },
  ])
  expect(response['usage']).toMatchObject({ input_tokens: 14, output_tokens: 6, total_tokens: 20 })
})

test('parallel calls run at once and are listed in order', async () => {
  const world = await startUpstream()
  const slow = { ...docs, allowed_tools: ['slow'] }
  const response = ask(world, { model: 'chat', input: 'parallel', tools: [slow] })
  await eventually('both run', () => world.server.slow.running === 2)
  world.server.slow.release()
  const calls = output(await response).filter(({ type }) => type === 'mcp_call')
  expect(calls.map((call) => call['output'])).toEqual(['waited in Oslo', 'waited in Rome'])
})

test('calls of client tools are passed on beside the remote ones', async () => {
  const own = { type: 'function', name: 'mine', parameters: { type: 'object', properties: {} } }
  const response = await ask(await start(), { tools: [own, weather] })
  expect(types(response)).toEqual(['mcp_list_tools', 'function_call', 'mcp_call'])
  expect(response['status']).toBe('completed')
})

test('max_tool_calls is enforced, and the model answers nevertheless', async () => {
  const world = await start()
  const tools = [{ ...docs, allowed_tools: ['get_weather', 'fail', 'numbers'] }]
  const response = await ask(world, { tools, max_tool_calls: 1 })
  const calls = output(response).filter(({ type }) => type === 'mcp_call')
  expect(calls.map(({ status }) => status)).toEqual(['completed', 'failed', 'failed'])
  expect(types(response).at(-1)).toBe('message')
  expect(world.server.calls).toEqual(['get_weather'])
})

test('a conversation continues after the calls, without a second list', async () => {
  const world = await startUpstream()
  const first = await ask(world, { model: 'chat', tools: [weather] })
  const follow = { previous_response_id: first['id'], input: 'And now?' }
  const second = await ask(world, { model: 'chat', tools: [weather], ...follow })
  expect(types(second)).toEqual(['mcp_call', 'message'])
  expect(world.server.lists()).toBe(1)
  const replayed = { store: false, input: [...output(first), { role: 'user', content: 'And?' }] }
  const third = await ask(world, { model: 'chat', tools: [weather], ...replayed })
  expect(types(third)).toEqual(['mcp_call', 'message'])
})

test('a server that cannot be listed is reported, and the model answers without it', async () => {
  const world = await start({
    toml: '[[mcp_server]]\nlabel = "gone"\nurl = "http://127.0.0.1:1/"\n',
  })
  const response = await ask(world, { tools: [{ ...docs, server_label: 'gone' }] })
  expect(output(response)).toMatchObject([
    { type: 'mcp_list_tools', tools: [], error: 'The server could not be reached.' },
    { type: 'message' },
  ])
})

test('an unsupported server is a 400 that names the field', async () => {
  const { gateway } = await start()
  const tool = { ...docs, server_label: 'other', server_url: 'https://127.0.0.1/mcp' }
  const httpResponse = await gateway.post('/v1/responses', {
    model: 'demo',
    input: 'Hi',
    tools: [tool],
  })
  expect(httpResponse.status).toBe(400)
  expect(await httpResponse.json()).toMatchObject({ error: { param: 'tools[0].server_url' } })
})

test('credentials are neither returned nor logged', async () => {
  const world = await start()
  const secret = { authorization: 'token-of-the-caller', headers: { 'x-key': 'key-of-the-caller' } }
  const tools = [{ ...docs, ...secret, allowed_tools: ['echo_secret', 'get_weather'] }]
  const response = await ask(world, { tools, model: 'demo-tools' })
  const seen = JSON.stringify(response) + world.gateway.logLines.join('\n')
  expect(world.server.requests.at(-1)?.headers.get('x-key')).toBe('key-of-the-caller')
  for (const word of [
    'token-of-the-caller',
    'key-of-the-caller',
    'a-secret-of-the-administrator',
  ]) {
    expect(seen).not.toContain(word)
  }
})

test('a client that disconnects during a call aborts the call', async () => {
  const world = await start()
  const reader = new AbortController()
  const answer = world.gateway.request('/v1/responses', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'demo-tools',
      input: 'Hi',
      stream: true,
      store: false,
      tools: [{ ...docs, allowed_tools: ['slow'] }],
    }),
    signal: reader.signal,
  })
  await eventually('the tool runs', () => world.server.slow.running === 1)
  reader.abort()
  await answer.then((response) => response.text()).catch(() => {})
  await eventually('the tool call is aborted', () => world.server.slow.aborted === 1)
  expect(world.gateway.deps.inference.running()).toBe(0)
})
