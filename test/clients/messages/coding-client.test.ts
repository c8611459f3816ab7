import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import {
  type MessageClients,
  messageKinds,
  startMessageClients,
} from '#test/support/message-clients.ts'
import {
  betaHeader,
  readTool,
  sendTurn,
  sessionBody,
  sessionHeaders,
  sessionId,
  systemBlocks,
  tools,
  webSearch,
} from './coding-session.ts'

/** A coding client with the gateway as its base URL, and the requests of each upstream. */

let world: MessageClients
let headers: Record<string, string>
beforeAll(async () => {
  world = await startMessageClients()
  headers = sessionHeaders(world.apiKey)
})
afterAll(() => world.stop())

const user = (text: string) => ({ role: 'user', content: [{ type: 'text', text }] })
const reminder = { role: 'system', content: [{ type: 'text', text: 'The todo list is empty.' }] }
const question = [user('Hello there.'), reminder]

const send = (model: string, messages: readonly JsonObject[], fields: object = {}) =>
  sendTurn(world.gateway, headers, { ...sessionBody(model, messages, 4711), ...fields })
const sentHeaders = () => world.upstream.requests.at(-1)?.headers ?? {}
const list = (value: unknown) => (Array.isArray(value) ? value.filter(isRecord) : [])

describe.each(messageKinds)('a coding client over a $kind upstream', ({ model }) => {
  test('can use either name of the model', async () => {
    for (const name of [model, `vendor-model-${model}`, `vendor-model-${model}[1m]`]) {
      const message = await send(name, question)
      expect(message['model']).toBe(name)
      expect(list(message['content'])).not.toEqual([])
    }
  })

  test('can count the tokens of the same request', async () => {
    const { max_tokens: _, stream: __, ...body } = sessionBody(model, question, 1)
    const httpResponse = await world.gateway.request('/compat/v1/messages/count_tokens?beta=true', {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    expect(asRecord(await httpResponse.json())['input_tokens']).toBeGreaterThan(50)
  })
})

test.each(['chat', 'responses'])(
  '%s gets nothing that is specific to the vendor',
  async (model) => {
    await send(model, question)
    const sent = JSON.stringify(world.asked())
    for (const word of [
      'billing',
      'cache_control',
      'context_management',
      'task_budget',
      'defer_loading',
      'web_search',
      'clear_thinking',
      sessionId,
    ]) {
      expect(sent).not.toContain(word)
    }
    const foreign = Object.keys(sentHeaders()).filter((name) =>
      /^(anthropic|x-stainless|x-claude|x-api-key|cookie)/.test(name),
    )
    expect(foreign).toEqual([])
  },
)

describe('a chat upstream', () => {
  test('gets a chat completions request', async () => {
    await send('chat', question)
    const { messages, tools: offered, ...rest } = world.asked()
    expect(messages).toEqual([
      {
        role: 'system',
        content: 'You are a coding agent.\n\nThe folder is /home/ada/sea. Today is a Saturday.',
      },
      {
        role: 'user',
        content: 'Hello there.\n\n[System instruction]\nThe todo list is empty.',
      },
    ])
    expect(list(offered).map((tool) => asRecord(tool['function'])['name'])).toEqual([
      'Read',
      'Bash',
      'mcp__sea__tides',
      'memory',
    ])
    expect(asRecord(list(offered)[0]?.['function'])['parameters']).toEqual(readTool.input_schema)
    expect(rest).toEqual({
      model: 'chat',
      max_tokens: 32_000,
      reasoning_effort: 'high',
      stream: true,
      stream_options: { include_usage: true },
    })
  })

  test('gets deferred tools after the client has found them', async () => {
    const deferred = tools.filter(({ type }) => type === undefined)
    const names = () =>
      list(world.asked()['tools']).map((tool) => asRecord(tool['function'])['name'])
    await send('chat', question, { tools: deferred })
    expect(names()).toEqual(['Read', 'Bash'])
    const reference = { type: 'tool_reference', tool_name: 'mcp__sea__tides' }
    const found = [
      user('When is high tide?'),
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: 'toolu_1', name: 'Read', input: {} }],
      },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [reference] }],
      },
    ]
    await send('chat', found, { tools: deferred })
    expect(names()).toEqual(['Read', 'Bash', 'mcp__sea__tides'])
  })

  test('gets no vendor search: the client gets an error, because no model here can search', async () => {
    for (const choice of [{}, { tool_choice: { type: 'tool', name: 'web_search' } }]) {
      const search = { tools: [webSearch], ...choice }
      const failure = await send('chat', question, search).catch((error) => error)
      expect(failure.message).toContain('web_search_20250305')
      expect(failure.message).toContain('invalid_request_error')
    }
  })

  test('gets server tool calls and results as tool calls and results', async () => {
    const history = [
      user('Search.'),
      {
        role: 'assistant',
        content: [
          {
            type: 'server_tool_use',
            id: 'srvtoolu_1',
            name: 'web_search',
            input: { query: 'sea' },
          },
          {
            type: 'web_search_tool_result',
            tool_use_id: 'srvtoolu_1',
            content: [
              {
                type: 'web_search_result',
                url: 'https://sea.example.com',
                title: 'The sea',
                encrypted_content: 'x',
              },
            ],
          },
          { type: 'text', text: 'It is wet.' },
        ],
      },
      user('recall it'),
    ]
    const { content } = await send('chat', history)
    expect(JSON.stringify(content)).toContain('It is wet.')
    expect(JSON.stringify(world.asked())).toContain('https://sea.example.com')
  })
})

test('a native Responses upstream gets reminders in their position', async () => {
  await send('responses', question)
  const { input, instructions, reasoning, tools: offered } = world.asked()
  expect(instructions).toBe(
    'You are a coding agent.\n\nThe folder is /home/ada/sea. Today is a Saturday.',
  )
  expect(list(input).map(({ role }) => role)).toEqual(['user', 'system'])
  expect(reasoning).toMatchObject({ effort: 'high' })
  expect(list(offered).map(({ name, strict }) => [name, strict])).toEqual([
    ['Read', false],
    ['Bash', false],
    ['mcp__sea__tides', false],
    ['memory', false],
  ])
})

test('a native Messages upstream gets the request unchanged', async () => {
  const body = sessionBody('vendor-model-messages', question, 4711)
  await sendTurn(world.gateway, headers, body)
  expect(world.asked()).toEqual({ ...body, model: 'messages', system: systemBlocks })
  expect(sentHeaders()).toMatchObject({
    'anthropic-version': '2023-06-01',
    'anthropic-beta': betaHeader,
    'x-claude-code-session-id': sessionId,
  })
  expect(JSON.stringify(sentHeaders())).not.toContain(world.apiKey)
})

test('the probes and the model discovery of a coding client succeed', async () => {
  const { url } = world.gateway
  for (const path of ['/', '/compat', '/compat/']) {
    for (const method of ['HEAD', 'GET']) {
      expect((await fetch(url + path, { method, redirect: 'manual' })).status).toBe(200)
    }
  }
  const { authorization = '' } = headers
  for (const credential of [{ authorization }, { 'x-api-key': world.apiKey }]) {
    const listed = await fetch(`${url}/compat/v1/models?limit=1000`, {
      headers: credential,
      redirect: 'error',
    })
    const ids = list(asRecord(await listed.json())['data']).map(({ id }) => id)
    expect(ids).toContain('vendor-model-chat')
  }
})
