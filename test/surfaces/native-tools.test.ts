import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { logOf, readFailure } from '#test/support/refusals.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { checkStream } from '#test/support/response-frames.ts'
import { chatAnswer } from '#test/support/scripted-answers.ts'
import { blockEvents, messageStart, messageWire } from '#test/support/scripted-messages.ts'

/** Tools that only an upstream of the client's protocol can run: forwarded there, refused elsewhere. */

let upstream: ReplayUpstream
let gateway: Gateway
/** Drops such tools. */
let lenient: Gateway

beforeAll(async () => {
  upstream = await startReplayUpstream(({ path, body }) => {
    if (path.endsWith('/chat/completions')) return { body: chatAnswer(body) }
    if (path.endsWith('/responses')) return { body: searchStream }
    if (path.endsWith('/messages')) return { body: serverToolStream }
    return { status: 404, body: '{}', headers: { 'content-type': 'application/json' } }
  })
  const { baseUrl: url } = upstream
  const options = {
    upstream: [
      { name: 'plain', url, models: ['chat', 'mixed'] },
      { name: 'open', url, api: 'responses', models: ['responses', 'mixed'] },
      { name: 'anthro', url, api: 'messages', models: ['messages', 'mixed'] },
    ],
  }
  gateway = await startGateway(options)
  lenient = await startGateway({ ...options, unsupportedTools: 'drop' })
})
afterAll(async () => {
  await gateway.stop()
  await lenient.stop()
  await upstream.stop()
})

const sse = (events: readonly JsonObject[]) =>
  events.map((event) => `event: ${event['type']}\ndata: ${JSON.stringify(event)}\n\n`).join('')
const action = { type: 'search', query: 'tides' }
const searchItem = { type: 'web_search_call', id: 'ws_theirs', status: 'completed', action }
const textItem = {
  type: 'message',
  id: 'm',
  role: 'assistant',
  content: [{ type: 'output_text', text: 'At noon.', annotations: [] }],
}
const stage = (name: string) => ({
  type: `response.web_search_call.${name}`,
  output_index: 0,
  item_id: 'ws_theirs',
})
const searchStream = sse([
  { type: 'response.created', response: { id: 'x', status: 'in_progress' } },
  {
    type: 'response.output_item.added',
    output_index: 0,
    item: { ...searchItem, status: 'in_progress', action: {} },
  },
  stage('in_progress'),
  stage('searching'),
  stage('completed'),
  { type: 'response.output_item.done', output_index: 0, item: searchItem },
  { type: 'response.output_item.done', output_index: 1, item: textItem },
  { type: 'response.completed', response: { status: 'completed', output: [searchItem, textItem] } },
])

const serverTool = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search' }
const serverToolStream = messageWire([
  messageStart,
  { type: 'content_block_start', index: 0, content_block: { ...serverTool, input: {} } },
  {
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'input_json_delta', partial_json: '{"query":"tides"}' },
  },
  { type: 'content_block_stop', index: 0 },
  {
    type: 'content_block_start',
    index: 1,
    content_block: { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
  },
  { type: 'content_block_stop', index: 1 },
  ...blockEvents({ type: 'text', text: 'At noon.' }, 2),
  {
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 3 },
  },
  { type: 'message_stop' },
])

const sent = (): JsonObject => JSON.parse(upstream.requests.at(-1)?.body ?? '{}')
const hostedTypes = [
  'web_search',
  'web_search_preview_2025_03_11',
  'code_interpreter',
  'image_generation',
  'computer_use_preview',
  'local_shell',
  'shell',
  'apply_patch',
  'acme:fly',
]
const respond = (at: Gateway, body: object) =>
  at.post('/v1/responses', { input: 'Tides?', ...body })

describe('POST /v1/responses', () => {
  test.each(hostedTypes)('refuses %s with a chat model, and names the upstreams', async (type) => {
    const requestCount = upstream.requests.length
    const tools = [{ type: 'function', name: 'look', parameters: {} }, { type }]
    const failure = await readFailure(await respond(gateway, { model: 'chat', tools }), gateway)
    expect(failure).toMatchObject({
      status: 400,
      code: 'tool_not_supported',
      param: 'tools[1]',
      message: `tools[1]: the tool "${type}" is not supported with the model "chat"; these upstreams have it: "open".`,
    })
    expect(upstream.requests).toHaveLength(requestCount)
  })

  test.each(hostedTypes)('forwards %s to a native upstream as sent', async (type) => {
    const tool = { type, some_setting: { x: [1] } }
    const include = ['web_search_call.action.sources', 'acme.unknown']
    const body = { model: 'responses', tools: [tool], include, max_tool_calls: 2 }
    const choice = { tool_choice: { type } }
    const httpResponse = await respond(gateway, { ...body, ...choice })
    expect(httpResponse.status).toBe(200)
    expect(sent()).toMatchObject({ tools: [tool], ...choice, max_tool_calls: 2 })
    expect(sent()['include']).toEqual(['web_search_call.action.sources'])
  })

  test('relays the items and events, and returns the items to the upstream', async () => {
    const body = { model: 'mixed', tools: [{ type: 'web_search' }] }
    const httpResponse = await respond(gateway, { ...body, stream: true })
    const { frames, response } = checkStream(await httpResponse.text())
    const types = frames.map(({ type }) => type)
    expect(types).toContain('response.web_search_call.searching')
    expect(response['output']).toMatchObject([
      { type: 'web_search_call', action },
      { type: 'message' },
    ])
    const previous = { previous_response_id: response['id'] }
    const next = await respond(gateway, { ...body, ...previous })
    expect(next.status).toBe(200)
    const { id: _, ...replayed } = searchItem
    expect(sent()['input']).toContainEqual(replayed)
    // Without the tool, the same conversation continues on any upstream.
    const plain = await respond(gateway, { model: 'chat', ...previous, tools: [] })
    expect(plain.status).toBe(200)
    expect(JSON.stringify(sent()['messages'])).not.toContain('web_search_call')
  })

  test('drops them if the operator says so, and logs it', async () => {
    const tools = [{ type: 'web_search' }, { type: 'function', name: 'look', parameters: {} }]
    const httpResponse = await respond(lenient, { model: 'chat', tools })
    expect(httpResponse.status).toBe(200)
    expect(sent()['tools']).toMatchObject([{ function: { name: 'look' } }])
    const logged = logOf(lenient, httpResponse.headers.get('x-request-id') ?? '')
    expect(logged).toContainEqual(expect.objectContaining({ tools: ['web_search'] }))
    for (const tool_choice of ['required', { type: 'web_search' }]) {
      const body = { model: 'chat', tools: [{ type: 'web_search' }], tool_choice }
      expect((await respond(lenient, body)).status).toBe(400)
    }
  })
})

const hello = { max_tokens: 100, messages: [{ role: 'user', content: 'Tides?' }] }
const say = (at: Gateway, body: object) => at.post('/compat/v1/messages', { ...hello, ...body })

describe('POST /compat/v1/messages', () => {
  const serverTools = [
    'web_search_20250305',
    'web_fetch_20260318',
    'code_execution_20250825',
    'computer_20250124',
    'advisor_20260301',
  ]
  test.each(serverTools)('refuses %s with a chat model', async (type) => {
    const name = type.replace(/_\d+$/, '')
    const failure = await readFailure(
      await say(gateway, { model: 'chat', tools: [{ type, name }] }),
      gateway,
    )
    expect(failure.status).toBe(400)
    expect(failure.message).toBe(
      `tools.0: the tool "${type}" is not supported with the model "chat"; these upstreams have it: "anthro".`,
    )
    expect(failure.seen).toContain('tool_not_supported')
  })

  test('counts tokens under the same rule', async () => {
    const tools = [{ type: 'web_search_20250305', name: 'web_search' }]
    const body = { model: 'chat', messages: hello.messages, tools }
    const path = '/compat/v1/messages/count_tokens'
    expect((await gateway.post(path, body)).status).toBe(400)
    expect((await lenient.post(path, body)).status).toBe(200)
  })

  const search = { type: 'web_search_20250305', name: 'web_search', max_uses: 3 }
  const future: [what: string, fields: JsonObject][] = [
    ['any with a server tool', { tools: [search], tool_choice: { type: 'any' } }],
    ['a forced server tool', { tools: [search], tool_choice: { type: 'tool', name: search.name } }],
    ['an unknown tool choice', { tool_choice: { type: 'most', of: 3 } }],
    ['an unknown kind of thinking', { thinking: { type: 'sideways' } }],
    ['an unknown format', { output_config: { format: { type: 'regex', pattern: 'x' } } }],
    ['an unknown block', { messages: [{ role: 'user', content: [{ type: 'hologram', x: 1 }] }] }],
    [
      'an unknown block in a tool result',
      {
        messages: [
          { role: 'user', content: 'x' },
          { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'n', input: {} }] },
          {
            role: 'user',
            content: [{ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'hologram' }] }],
          },
        ],
      },
    ],
    [
      'an unknown source',
      { messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'orbit' } }] }] },
    ],
    [
      'an unknown block of the assistant',
      {
        messages: [
          { role: 'user', content: 'x' },
          { role: 'assistant', content: [{ type: 'hologram' }] },
          { role: 'user', content: 'y' },
        ],
      },
    ],
  ]
  test.each(future)(
    '%s reaches a native upstream as it is, and no other',
    async (_what, fields) => {
      for (const model of ['messages', 'mixed']) {
        expect((await say(gateway, { model, ...fields })).status).toBe(200)
        expect(sent()).toMatchObject({ ...hello, ...fields })
      }
      const requestCount = upstream.requests.length
      for (const at of [gateway, lenient]) {
        const failure = await readFailure(await say(at, { model: 'responses', ...fields }), at)
        expect(failure.status).toBe(400)
      }
      expect(upstream.requests).toHaveLength(requestCount)
    },
  )

  test('the blocks of a server tool are relayed', async () => {
    const httpResponse = await say(gateway, { model: 'messages', tools: [search] })
    const message = asRecord(await httpResponse.json())
    expect(message['content']).toMatchObject([
      { ...serverTool, input: { query: 'tides' } },
      { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1' },
      { type: 'text' },
    ])
  })

  test('an agent does not lose a server tool', async () => {
    const agent = { name: 'Pilot', model: 'messages', instructions: 'Be brief.' }
    const created = asRecord(await (await gateway.post('/v1/agents', agent)).json())
    const body = { model: `vendor-agent-${created['id']}`, tools: [search] }
    expect((await say(gateway, body)).status).toBe(200)
    expect(sent()).toMatchObject({ system: 'Be brief.', tools: [search] })
  })

  test('tools that the client runs are functions with their schemas', async () => {
    const tools = [
      { type: 'bash_20250124', name: 'bash' },
      { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool', max_characters: 9 },
      { type: 'memory_20250818', name: 'memory' },
    ]
    const httpResponse = await say(gateway, { model: 'chat', tools })
    expect(httpResponse.status).toBe(200)
    const functions = [sent()['tools']].flat().filter(isRecord)
    expect(functions.map((each) => asRecord(each['function'])['name'])).toEqual([
      'bash',
      'str_replace_based_edit_tool',
      'memory',
    ])
    expect(await httpResponse.json()).toMatchObject({
      stop_reason: 'tool_use',
      content: [{ type: 'tool_use', name: 'bash' }],
    })
  })
})
