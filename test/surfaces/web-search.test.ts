import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { asRecord, isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { checkMessageStream } from '#test/support/message-frames.ts'
import { chatStream } from '#test/support/recordings.ts'
import { readFailure } from '#test/support/refusals.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { checkStream } from '#test/support/response-frames.ts'
import { chunk } from '#test/support/scripted-answers.ts'
import { type McpGateway, startMcpGateway } from '#test/surfaces/responses/mcp-gateway.ts'

/** Web search as a client asks for it, with a model whose upstream has none and an MCP server that has. */

let chat: ReplayUpstream
let world: McpGateway
let openai: OpenAI
let anthropic: Anthropic

const models = { chat: 'chat', native: 'native', vendor: 'vendor' }

beforeAll(async () => {
  chat = await startReplayUpstream(({ path, body }) => {
    if (path.endsWith('/chat/completions')) return { body: searchThenAnswer(body) }
    return { status: 400, body: '{"error":{"message":"seen"}}' }
  })
  const { baseUrl: url } = chat
  world = await startMcpGateway({
    toml: '[web_search]\nmcp_server = "docs"\ntool = "search"\nquery_field = "q"\n',
    upstream: [
      { name: 'plain', url, models: [models.chat] },
      { name: 'open', url, api: 'responses', models: [models.native] },
      { name: 'anthro', url, api: 'messages', models: [models.vendor] },
    ],
    retry: { retriesMax: 0 },
  })
  const { gateway } = world
  openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: await gateway.token() })
  anthropic = new Anthropic({ baseURL: `${gateway.url}/compat`, apiKey: await gateway.token() })
})
afterAll(async () => {
  await world.stop()
  await chat.stop()
})

/** Searches for the words of the last message, then answers with the results. */
function searchThenAnswer(body: string): string {
  const { messages, tools = [] } = asRecord(parseJson(body))
  const last = asRecord(Array.isArray(messages) ? messages.at(-1) : null)
  const names = Array.isArray(tools) ? tools.map(nameOf) : []
  const search = names.find((name) => name.startsWith('web_search'))
  if (last['role'] === 'tool' || search === undefined) {
    return chatStream([chunk({ content: `I read: ${textOf(last['content'])}` }), chunk({}, 'stop')])
  }
  const queries = textOf(last['content']).split(' and ')
  return chatStream([
    ...queries.map((query, index) => {
      const call = { name: search, arguments: JSON.stringify({ query }) }
      return chunk({ tool_calls: [{ index, id: `call_${index}`, function: call }] })
    }),
    chunk({}, 'tool_calls'),
  ])
}

const nameOf = (tool: unknown) => String(asRecord(asRecord(tool)['function'])['name'])
const textOf = (content: unknown): string =>
  Array.isArray(content)
    ? content.map((part) => String(asRecord(part)['text'])).join('')
    : String(content)
const lastRequest = () => asRecord(parseJson(chat.requests.at(-1)?.body ?? ''))
const searches = () => world.server.calls.filter((call) => call.startsWith('search '))

describe('POST /v1/responses', () => {
  const respond = (body: object) =>
    world.gateway.post('/v1/responses', {
      model: models.chat,
      input: 'tides',
      tools: [{ type: 'web_search' }],
      ...body,
    })

  test('the search runs here, and its items and events are those of the protocol', async () => {
    const before = searches().length
    const httpResponse = await respond({ stream: true })
    const { frames, response } = checkStream(await httpResponse.text())
    expect(searches().slice(before)).toEqual(['search tides'])
    expect(frames.map(({ type }) => type).filter((type) => type.includes('web_search'))).toEqual([
      'response.web_search_call.in_progress',
      'response.web_search_call.searching',
      'response.web_search_call.completed',
    ])
    const [call, message] = response['output'] as JsonObject[]
    expect(call).toEqual({
      id: expect.any(String),
      type: 'web_search_call',
      status: 'completed',
      action: {
        type: 'search',
        query: 'tides',
        queries: ['tides'],
        sources: [
          { type: 'url', url: 'https://tides.example.com/today' },
          { type: 'url', url: 'https://other.example.org/' },
        ],
      },
    })
    expect(JSON.stringify(message)).toContain('High water at 12:00.')
    expect(response['tools']).toEqual([{ type: 'web_search' }])
  })

  test('the openai package reads it, and results are included on request', async () => {
    const stream = openai.responses.stream({
      model: models.chat,
      input: 'tides',
      tools: [{ type: 'web_search', filters: { allowed_domains: ['example.com'] } }],
      include: ['web_search_call.results'],
    })
    const { output, output_text: text } = await stream.finalResponse()
    expect(output.map(({ type }) => type)).toEqual(['web_search_call', 'message'])
    expect(output[0]).toMatchObject({
      results: [{ url: 'https://tides.example.com/today', text: 'High water at 12:00.' }],
    })
    expect(text).not.toContain('Low water')
  })

  test('a forced search, a listed one and none', async () => {
    await respond({ tool_choice: { type: 'web_search' } })
    expect(chat.requests.at(-2)?.body).toContain(
      '"tool_choice":{"type":"function","function":{"name":"web_search"}}',
    )
    const listed = await respond({
      tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'web_search' }] },
    })
    expect(listed.status).toBe(200)
    const before = searches().length
    await respond({ tool_choice: 'none' })
    expect(searches()).toHaveLength(before)
  })

  test('a later turn knows what an earlier one found', async () => {
    const first = asRecord(await (await respond({})).json())
    await respond({ previous_response_id: first['id'], input: 'Thanks', tools: [] })
    expect(JSON.stringify(lastRequest()['messages'])).toContain('Low water at 18:00.')
    // Without storing, the client sends the items back, which have no results.
    const output = first['output'] as JsonObject[]
    const input = [...output, { role: 'user', content: 'Thanks' }]
    expect((await respond({ input, tools: [] })).status).toBe(200)
  })

  test('an upstream of the protocol gets the tool as sent', async () => {
    const before = searches().length
    await respond({ model: models.native })
    expect(lastRequest()['tools']).toEqual([{ type: 'web_search' }])
    expect(searches()).toHaveLength(before)
  })

  test.each([
    ['a second search', [{ type: 'web_search' }, { type: 'web_search_preview' }], 'tools[1].type'],
    [
      'a domain that is none',
      [{ type: 'web_search', filters: { allowed_domains: ['no domain'] } }],
      'tools[0].filters.allowed_domains[0]',
    ],
    ['another tool', [{ type: 'web_search' }, { type: 'code_interpreter' }], 'tools[1]'],
  ])('%s is refused', async (_, tools, param) => {
    const failure = await readFailure(await respond({ tools }), world.gateway)
    expect(failure).toMatchObject({ status: 400, param })
  })
})

describe('POST /compat/v1/messages', () => {
  const tool = { type: 'web_search_20250305' as const, name: 'web_search' as const }
  const ask = (content: string, more: object = {}) => ({
    model: models.chat,
    max_tokens: 500,
    messages: [{ role: 'user' as const, content }],
    tools: [tool],
    ...more,
  })
  const send = (body: object) => world.gateway.post('/compat/v1/messages', body)

  test('the search runs here, and its blocks are those of the protocol', async () => {
    const httpResponse = await send({ ...ask('tides'), stream: true })
    const message = asRecord(checkMessageStream(await httpResponse.text()).message)
    expect(message['content']).toMatchObject([
      { type: 'server_tool_use', name: 'web_search', input: { query: 'tides' } },
      {
        type: 'web_search_tool_result',
        content: [
          { type: 'web_search_result', url: 'https://tides.example.com/today', title: 'Tides' },
          { type: 'web_search_result', url: 'https://other.example.org/', title: 'Other' },
        ],
      },
      { type: 'text', text: expect.stringContaining('High water at 12:00.') },
    ])
    expect(message['usage']).toMatchObject({ server_tool_use: { web_search_requests: 1 } })
  })

  test('the package sends the blocks back, and the model reads the results again', async () => {
    const stream = anthropic.messages.stream(ask('tides'))
    const { content, stop_reason: reason } = await stream.finalMessage()
    expect(reason).toBe('end_turn')
    const result = content.find(({ type }) => type === 'web_search_tool_result')
    expect(JSON.stringify(result)).not.toContain('High water')
    await anthropic.messages.create({
      ...ask('tides'),
      tools: [],
      messages: [
        { role: 'user', content: 'tides' },
        { role: 'assistant', content: content as Anthropic.ContentBlockParam[] },
        { role: 'user', content: 'Thanks' },
      ],
    })
    const sent = lastRequest()['messages'] as JsonObject[]
    expect(sent.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant', 'user'])
    expect(JSON.stringify(sent[2])).toContain('High water at 12:00.')
    // An upstream of the protocol could not decrypt them.
    const messages = [
      { role: 'assistant', content },
      { role: 'user', content: 'Thanks' },
    ]
    await send({ ...ask('tides'), model: models.vendor, messages })
    const blocks = asRecord((lastRequest()['messages'] as JsonObject[])[0])['content']
    expect(blocks).toContainEqual(expect.objectContaining({ content: [] }))
  })

  test.each([
    [
      'domains that are blocked',
      'tides',
      { blocked_domains: ['example.com'] },
      ['other.example.org'],
    ],
    [
      'domains that are allowed',
      'tides',
      { allowed_domains: ['other.example.org/'] },
      ['other.example.org'],
    ],
    ['a text with a link', 'plain', {}, ['tides.example.com']],
  ])('%s', async (_, words, settings, hosts) => {
    const message = asRecord(
      await (await send(ask(words, { tools: [{ ...tool, ...settings }] }))).json(),
    )
    const [, result] = message['content'] as JsonObject[]
    const found = Array.isArray(result?.['content']) ? result['content'].filter(isRecord) : []
    expect(found.map(({ url }) => new URL(String(url)).hostname)).toEqual(hosts)
  })

  test.each([
    ['more searches than max_uses', 'tides and tides', { max_uses: 1 }, 'max_uses_exceeded'],
    ['a search that fails', 'broken', {}, 'unavailable'],
    [
      'domains of a text without list',
      'plain',
      { allowed_domains: ['example.com'] },
      'unavailable',
    ],
    ['a long query', 'x'.repeat(3_000), {}, 'query_too_long'],
    ['an empty query', '', {}, 'invalid_tool_input'],
  ])('%s: the result is the error of the protocol', async (_, words, settings, code) => {
    const tools = [{ ...tool, ...settings }]
    const body = { ...ask(words === '' ? ' and ' : words, { tools }), stream: true }
    const message = asRecord(checkMessageStream(await (await send(body)).text()).message)
    const results = (message['content'] as JsonObject[]).filter(
      ({ type }) => type === 'web_search_tool_result',
    )
    expect(results.at(-1)?.['content']).toEqual({
      type: 'web_search_tool_result_error',
      error_code: code,
    })
    expect(message['stop_reason']).toBe('end_turn')
  })

  test('a forced search, and one that a later message removes', async () => {
    await send(ask('tides', { tool_choice: { type: 'tool', name: 'web_search' } }))
    expect(chat.requests.at(-2)?.body).toContain('"name":"web_search"}}')
    const before = searches().length
    await send(ask('tides', { tool_choice: { type: 'none' } }))
    expect(searches()).toHaveLength(before)
    expect((await send(ask('tides', { tool_choice: { type: 'any' } }))).status).toBe(200)
  })

  test('tokens are counted', async () => {
    const { max_tokens: _, ...body } = ask('tides')
    const path = '/compat/v1/messages/count_tokens'
    expect((await world.gateway.post(path, body)).status).toBe(200)
  })
})

test('a user who may not use the server is refused, as without a search', async () => {
  const { gateway, stop } = await startMcpGateway({
    toml: 'groups = ["staff"]\n[web_search]\nmcp_server = "docs"\n',
    upstream: [{ name: 'plain', url: chat.baseUrl, models: [models.chat] }],
  })
  const body = { model: models.chat, input: 'tides', tools: [{ type: 'web_search' }] }
  const httpResponse = await gateway.post('/v1/responses', body)
  expect(await readFailure(httpResponse, gateway)).toMatchObject({ code: 'tool_not_supported' })
  await stop()
})
