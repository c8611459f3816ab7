import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import { type ServedMcp, serveMcp } from '#test/hosted-tools/mcp-server.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { checkMessageStream } from '#test/support/message-frames.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { chatAnswer } from '#test/support/scripted-answers.ts'
import { messagesAnswer } from '#test/support/scripted-messages.ts'

/** `mcp_servers` of the Messages API: called here, unless the upstream speaks the protocol. */

let server: ServedMcp
let upstream: ReplayUpstream
let gateway: Gateway

beforeAll(async () => {
  server = await serveMcp()
  upstream = await startReplayUpstream(({ path, body }) => {
    if (path.endsWith('/chat/completions')) return { body: chatAnswer(body) }
    if (path.endsWith('/messages')) return messagesAnswer(body)
    return { status: 404, body: '{}', headers: { 'content-type': 'application/json' } }
  })
  const url = upstream.baseUrl
  gateway = await startGateway({
    upstream: [
      { url, models: ['chat'] },
      { url, api: 'messages', models: ['messages'] },
    ],
    mcpServer: [{ label: 'weather', url: server.url, headers: {}, groups: [] }],
  })
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop()
  await server.stop()
})

const remote = () => ({ type: 'url', name: 'docs', url: server.url })
const toolset = (fields: object = {}) => ({
  type: 'mcp_toolset',
  mcp_server_name: 'docs',
  default_config: { enabled: false },
  configs: { get_weather: { enabled: true } },
  ...fields,
})
const say = (body: object) =>
  gateway.post('/compat/v1/messages', {
    model: 'chat',
    max_tokens: 100,
    messages: [{ role: 'user', content: 'Oslo?' }],
    ...body,
  })
const requests = (): JsonObject[] => upstream.requests.map(({ body }) => JSON.parse(body || '{}'))
const namesIn = (body: JsonObject | undefined) =>
  [body?.['tools'] ?? []]
    .flat()
    .filter(isRecord)
    .map((tool) => asRecord(tool['function'])['name'])

describe('over a chat upstream', () => {
  test('the gateway calls the tools and shows the calls', async () => {
    const body = { mcp_servers: [remote()], tools: [toolset()], stream: true }
    const { message } = checkMessageStream(await (await say(body)).text())
    expect(message).toMatchObject({
      stop_reason: 'end_turn',
      content: [
        { type: 'mcp_tool_use', server_name: 'docs', name: 'get_weather' },
        { type: 'mcp_tool_result', is_error: false },
        { type: 'text' },
      ],
    })
    expect(server.calls.at(-1)).toBe('get_weather')
    expect(namesIn(requests().at(-1))).toEqual(['mcp__docs__get_weather'])
    const messages = [
      { role: 'user', content: 'Oslo?' },
      { role: 'assistant', content: message?.['content'] },
      { role: 'user', content: 'And now?' },
    ]
    expect((await say({ ...body, messages, stream: false })).status).toBe(200)
    expect(JSON.stringify(requests().at(-1)?.['messages'])).toContain('mcp__docs__get_weather')
  })

  test.each<[what: string, server: object, tools: object[], names: string[]]>([
    ['without a toolset', {}, [], ['mcp__docs__get_weather', 'mcp__docs__fail']],
    [
      'with allowed tools',
      { tool_configuration: { allowed_tools: ['fail'] } },
      [],
      ['mcp__docs__fail'],
    ],
    [
      'with a disabled tool',
      {},
      [{ default_config: {}, configs: { fail: { enabled: false } } }],
      ['mcp__docs__get_weather'],
    ],
  ])('a server %s', async (_what, fields, toolsets, names) => {
    const mcp_servers = [{ ...remote(), ...fields }]
    const tools = toolsets.map(toolset)
    const counted = upstream.requests.length
    expect((await say({ mcp_servers, tools })).status).toBe(200)
    const offered = namesIn(requests()[counted])
    expect(offered).toEqual(expect.arrayContaining(names))
    expect(offered.includes('mcp__docs__fail')).toBe(names.includes('mcp__docs__fail'))
  })

  test.each<[body: () => object, message: string]>([
    [() => ({ mcp_servers: [{ ...remote(), name: 'two words' }] }), 'mcp_servers.0.name'],
    [() => ({ mcp_servers: [{ ...remote(), url: 'http://10.0.0.9/x' }] }), 'mcp_servers.0.url'],
    [() => ({ tools: [toolset()] }), 'tools'],
  ])('faults are refused: %#', async (body, message) => {
    const failure = asRecord(await (await say(body())).json())
    expect(asRecord(failure['error'])['message']).toStartWith(message)
  })
})

test('an upstream of the protocol calls the servers itself', async () => {
  const calls = server.calls.length
  const body = {
    model: 'messages',
    mcp_servers: [{ ...remote(), name: 'two words' }],
    tools: [toolset({ mcp_server_name: 'two words' })],
  }
  expect((await say(body)).status).toBe(200)
  expect(requests().at(-1)).toMatchObject(body)
  expect(server.calls).toHaveLength(calls)
})
