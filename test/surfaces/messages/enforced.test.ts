import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { checkMessageStream } from '#test/support/message-frames.ts'
import { chatStream } from '#test/support/recordings.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { chunk } from '#test/support/scripted-answers.ts'

/** Parameters that models and upstreams ignore: stop sequences and forced tools. */

let native: ReplayUpstream
let chat: ReplayUpstream
let gateway: Gateway

beforeAll(async () => {
  native = await startReplayUpstream({})
  chat = await startReplayUpstream({})
  gateway = await startGateway({
    upstream: [
      { api: 'messages', url: native.baseUrl, models: ['native'] },
      { url: chat.baseUrl, models: ['chat'] },
    ],
  })
})
afterAll(async () => {
  await gateway.stop()
  await native.stop()
  await chat.stop()
})

const messages = [{ role: 'user', content: 'Count.' }]
const ask = (given: object) =>
  gateway.post('/compat/v1/messages', { model: 'native', max_tokens: 100, messages, ...given })
const bodyOf = (upstream: ReplayUpstream) =>
  asRecord(parseJson(upstream.requests.at(-1)?.body ?? ''))

const sse = (events: readonly JsonObject[]) =>
  events.map((event) => `event: ${event['type']}\ndata: ${JSON.stringify(event)}\n\n`).join('')

const start = {
  type: 'message_start',
  message: {
    id: 'msg_up',
    type: 'message',
    role: 'assistant',
    model: 'up',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 7, output_tokens: 1 },
  },
}
const block = (index: number, shell: JsonObject, deltas: readonly JsonObject[]) => [
  { type: 'content_block_start', index, content_block: shell },
  ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
  { type: 'content_block_stop', index },
]
const text = (index: number, ...texts: string[]) =>
  block(
    index,
    { type: 'text', text: '' },
    texts.map((piece) => ({ type: 'text_delta', text: piece })),
  )
const end = (stop_reason: string) => [
  {
    type: 'message_delta',
    delta: { stop_reason, stop_sequence: null },
    usage: { output_tokens: 30 },
  },
  { type: 'message_stop' },
]

describe('stop sequences that a Messages upstream ignores', () => {
  const said = [start, ...text(0, 'one, ', 'two, th', 'r', 'ee, four'), ...text(1, 'five')]
  const stopped = {
    content: [{ type: 'text', text: 'one, two, ' }],
    stop_reason: 'stop_sequence',
    stop_sequence: 'three',
  }

  test.each([
    ['at once', undefined],
    ['in pieces', Array.from({ length: 60 }, (_, index) => index * 20)],
  ])('end a stream that arrives %s, and its upstream request', async (_, cutsAt) => {
    native.answer({ body: sse(said), ending: 'hang', ...(cutsAt && { cutsAt }) })
    const { aborted } = native.connections
    const answer = await ask({ stream: true, stop_sequences: ['three', 'six'] })
    expect(checkMessageStream(await answer.text()).message).toMatchObject(stopped)
    await native.until(({ connections }) => connections.aborted > aborted)
    expect(bodyOf(native)['stop_sequences']).toEqual(['three', 'six'])
  })

  test('end a whole message, with its usage where it is known', async () => {
    native.answer({ body: sse([...said, ...end('end_turn')]) })
    const message = asRecord(await (await ask({ stop_sequences: ['three'] })).json())
    expect(message).toMatchObject({ ...stopped, usage: { output_tokens: expect.any(Number) } })
  })

  test('that do not occur change no frame', async () => {
    const events = [start, ...text(0, 'one, thre', 'at'), ...text(1, 'e'), ...end('end_turn')]
    native.answer({ body: sse(events) })
    const answer = await ask({ stream: true, stop_sequences: ['three'] })
    expect(checkMessageStream(await answer.text()).message).toMatchObject({
      content: [
        { type: 'text', text: 'one, threat' },
        { type: 'text', text: 'e' },
      ],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { output_tokens: 30 },
    })
  })
})

describe('a forced tool', () => {
  const schema = { type: 'object', properties: {} }
  const tools = ['get', 'put'].map((name) => ({ name, input_schema: schema }))
  const functions = ['get', 'put'].map((name) => ({ type: 'function', name, parameters: schema }))
  const saysChat = chatStream([
    chunk({ content: 'I will not.' }, 'stop'),
    { choices: [], usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } },
  ])
  const callsChat = (name: string) =>
    chatStream([
      chunk({ content: 'Well:' }),
      chunk(
        { tool_calls: [{ index: 0, id: 'c1', function: { name, arguments: '{}' } }] },
        'tool_calls',
      ),
      { choices: [], usage: { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 } },
    ])
  const callsNative = [
    start,
    ...block(0, { type: 'tool_use', id: 'toolu_1', name: 'get', input: {} }, [
      { type: 'input_json_delta', partial_json: '{}' },
    ]),
    ...end('tool_use'),
  ]
  /** Answers in turn; the last one is repeated. */
  const answerInTurn = (upstream: ReplayUpstream, ...bodies: string[]) => {
    const first = upstream.requests.length
    upstream.answer(() => {
      const at = Math.min(upstream.requests.length - first, bodies.length) - 1
      return { body: bodies[Math.max(at, 0)] ?? '' }
    })
    return () => upstream.requests.length - first
  }

  test.each([{ type: 'any' }, { type: 'tool', name: 'get' }])(
    'is demanded again in words for %j',
    async (tool_choice) => {
      const count = answerInTurn(chat, saysChat, callsChat('get'))
      const answer = await ask({ model: 'chat', tools, tool_choice, stream: true })
      const { message } = checkMessageStream(await answer.text())
      expect(message).toMatchObject({
        content: [{ text: 'Well:' }, { type: 'tool_use', name: 'get' }],
        stop_reason: 'tool_use',
        // Of both attempts.
        usage: { input_tokens: 16, output_tokens: 7 },
      })
      expect(JSON.stringify(message)).not.toContain('will not')
      expect(count()).toBe(2)
      expect(JSON.stringify(bodyOf(chat)['messages'])).toContain('You must call')
    },
  )

  test('that is not called twice is an error, on both surfaces', async () => {
    const count = answerInTurn(chat, saysChat)
    const message = await ask({ model: 'chat', tools, tool_choice: { type: 'any' } })
    expect(message.status).toBe(502)
    expect(await message.text()).toContain('tool_choice')
    expect(count()).toBe(2)
    const given = { model: 'chat', input: 'x', store: false, tools: functions }
    const response = await gateway.post('/v1/responses', { ...given, tool_choice: 'required' })
    expect(response.status).toBe(502)
    expect(await response.text()).toContain('tool_choice')
    expect(count()).toBe(4)
  })

  test('is not replaced by a call of another tool', async () => {
    const count = answerInTurn(chat, callsChat('put'), callsChat('get'))
    const tool_choice = { type: 'function', name: 'get' }
    const given = { model: 'chat', input: 'x', store: false, tools: functions, tool_choice }
    const response = asRecord(await (await gateway.post('/v1/responses', given)).json())
    expect(JSON.stringify(response['output'])).toContain('"name":"get"')
    expect(JSON.stringify(response['output'])).not.toContain('"name":"put"')
    expect(count()).toBe(2)
  })

  test('at a Messages upstream is demanded with the original request', async () => {
    const count = answerInTurn(
      native,
      sse([start, ...text(0, 'No.'), ...end('end_turn')]),
      sse(callsNative),
    )
    const answer = await ask({ tools, tool_choice: { type: 'any' }, stream: true, vendor_field: 1 })
    expect(checkMessageStream(await answer.text()).message).toMatchObject({
      content: [{ type: 'tool_use', name: 'get' }],
    })
    expect(count()).toBe(2)
    const { messages: sent, vendor_field } = bodyOf(native)
    expect(vendor_field).toBe(1)
    expect(sent).toEqual([
      ...messages,
      { role: 'user', content: expect.stringContaining('You must call') },
    ])
  })

  test('is not demanded after a call of a server tool', async () => {
    const use = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'code_execution', input: {} }
    const count = answerInTurn(
      native,
      sse([start, ...block(0, use, []), ...text(1, 'Done.'), ...end('end_turn')]),
    )
    const server = { type: 'code_execution_20250825', name: 'code_execution' }
    const answer = await ask({ tools: [...tools, server], tool_choice: { type: 'any' } })
    expect(asRecord(await answer.json())['content']).toMatchObject([use, { text: 'Done.' }])
    expect(count()).toBe(1)
  })

  test.each(['length', 'content_filter'])('is not demanded after %s', async (reason) => {
    const count = answerInTurn(chat, chatStream([chunk({ content: 'I' }, reason)]))
    const answer = await ask({ model: 'chat', tools, tool_choice: { type: 'any' } })
    expect(answer.status).toBe(200)
    expect(count()).toBe(1)
  })

  test('that is called at once is called once', async () => {
    const count = answerInTurn(chat, callsChat('get'))
    await (await ask({ model: 'chat', tools, tool_choice: { type: 'any' } })).json()
    expect(count()).toBe(1)
  })
})
