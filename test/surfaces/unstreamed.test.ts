import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { asRecord, isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { chatStream } from '#test/support/recordings.ts'
import {
  type ReplayAnswer,
  type ReplayRequest,
  startReplayUpstream,
} from '#test/support/replay-upstream.ts'
import { chunk } from '#test/support/scripted-answers.ts'

/** A response that its client does not stream is requested without streaming. */

const text = 'A gate that lets water through.'
const chatMessage = { role: 'assistant', content: text }
const bodies: Readonly<Record<string, JsonObject>> = {
  chat: {
    object: 'chat.completion',
    choices: [{ index: 0, message: chatMessage, finish_reason: 'stop' }],
    usage: { prompt_tokens: 7, completion_tokens: 6, total_tokens: 13 },
  },
  responses: {
    object: 'response',
    status: 'completed',
    output: [
      {
        type: 'message',
        role: 'assistant',
        content: [{ type: 'output_text', text, annotations: [] }],
      },
    ],
    usage: { input_tokens: 7, output_tokens: 6, total_tokens: 13 },
  },
  messages: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 7, output_tokens: 6 },
  },
}

const clients = {
  'unstored response': { path: '/v1/responses', body: { input: 'x', store: false } },
  'stored response': { path: '/v1/responses', body: { input: 'x' } },
  message: {
    path: '/compat/v1/messages',
    body: { max_tokens: 99, messages: [{ role: 'user', content: 'x' }] },
  },
} as const

const json = (body: unknown): ReplayAnswer => ({
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
})
const refused = (message: string): ReplayAnswer => ({
  ...json({ error: { message, type: 'invalid_request_error' } }),
  status: 400,
})
const streamed: ReplayAnswer = { body: chatStream([chunk({ content: text }), chunk({}, 'stop')]) }
const wholeChat = json(bodies['chat'])

const upstream = await startReplayUpstream(wholeChat)
let gateway: Gateway
/** Waits briefly for a first event. */
let impatient: Gateway
/** Ends each generation soon. */
let brief: Gateway
beforeAll(async () => {
  const entry = { url: upstream.baseUrl }
  const chat = { upstream: [{ models: ['chat'], ...entry }] }
  impatient = await startGateway({ ...chat, deadlines: { firstEventMs: 150 } })
  brief = await startGateway({ ...chat, deadlines: { totalMs: 150 } })
  gateway = await startGateway({
    retry: { retriesMax: 1, backoffMs: 1 },
    upstream: [
      { name: 'c', api: 'chat', models: ['chat', 'picky'], ...entry },
      { name: 'r', api: 'responses', models: ['responses'], ...entry },
      { name: 'm', api: 'messages', models: ['messages'], ...entry },
      { name: 's', api: 'chat', models: ['always-streams'], unstreamed: false, ...entry },
    ],
  })
})
afterAll(async () => {
  for (const each of [gateway, impatient, brief]) await each.stop()
  await upstream.stop()
})

let firstRequest = 0
beforeEach(() => {
  firstRequest = upstream.requests.length
})
const sent = (): readonly ReplayRequest[] => upstream.requests.slice(firstRequest)
const streams = () => sent().map(({ body }) => asRecord(parseJson(body))['stream'])

async function ask(
  client: keyof typeof clients,
  model: string,
  fields: object = {},
  of: Gateway = gateway,
) {
  const { path, body } = clients[client]
  const response = await of.post(path, { model, ...body, ...fields })
  return { status: response.status, body: asRecord(await response.json()) }
}

/** The text of a Response or of a message. */
function textOf(result: JsonObject): unknown {
  const first = Array.isArray(result['output']) ? result['output'][0] : result
  const parts = isRecord(first) ? first['content'] : undefined
  const part: unknown = Array.isArray(parts) ? parts[0] : undefined
  return isRecord(part) ? part['text'] : undefined
}

describe.each(Object.keys(bodies))('from an upstream of the protocol %s', (protocol) => {
  test.each(Object.keys(clients) as (keyof typeof clients)[])('%s', async (client) => {
    upstream.answer(json(bodies[protocol]))
    const { body } = await ask(client, protocol)
    expect(textOf(body)).toBe(text)
    expect(asRecord(body['usage'])).toMatchObject({ input_tokens: 7, output_tokens: 6 })
    expect(streams()).toEqual([false])
    expect(sent()[0]?.headers['accept']).toBe('application/json')
    expect(sent()[0]?.body).not.toContain('stream_options')
  })
})

describe('the upstream streams', () => {
  beforeEach(() => upstream.answer(streamed))

  test('for a client that streams', async () => {
    const response = await gateway.post('/v1/responses', {
      model: 'chat',
      input: 'x',
      stream: true,
    })
    expect(await response.text()).toContain(text)
    expect(streams()).toEqual([true])
  })

  test('for a background response, which can be watched while it runs', async () => {
    const { body } = await ask('stored response', 'chat', { background: true })
    const watched = await gateway.request(`/v1/responses/${body['id']}?stream=true`)
    expect(await watched.text()).toContain(text)
    expect(streams()).toEqual([true])
  })

  test('for stop sequences, which end the request at a match', async () => {
    const { body } = await ask('message', 'chat', { stop_sequences: ['water'] })
    expect(textOf(body)).toBe('A gate that lets ')
    expect(streams()).toEqual([true])
  })

  test('where unstreamed requests are switched off', async () => {
    expect(textOf((await ask('message', 'always-streams')).body)).toBe(text)
    expect(streams()).toEqual([true])
  })
})

test('an upstream that streams nevertheless is read', async () => {
  upstream.answer(streamed)
  expect(textOf((await ask('unstored response', 'chat')).body)).toBe(text)
  expect(streams()).toEqual([false])
})

test('a model that only streams is asked again, and from then on only with streaming', async () => {
  upstream.answer(({ body }) =>
    body.includes('"stream":true') ? streamed : refused('This model only supports streaming.'),
  )
  expect(textOf((await ask('unstored response', 'picky')).body)).toBe(text)
  expect(textOf((await ask('message', 'picky')).body)).toBe(text)
  expect(streams()).toEqual([false, true, true])
  const accepted = sent().map(({ headers }) => headers['accept'])
  expect(accepted).toEqual(['application/json', 'text/event-stream', 'text/event-stream'])
})

test('a model that asks for streaming in either case is asked twice', async () => {
  upstream.answer(refused('This model only supports streaming.'))
  expect((await ask('unstored response', 'chat')).status).toBe(400)
  expect(streams()).toEqual([false, true])
})

test('another refusal is not repeated with streaming', async () => {
  upstream.answer(refused('The temperature is too high.'))
  expect((await ask('unstored response', 'chat')).status).toBe(400)
  expect(streams()).toEqual([false])
})

test('a whole response may take longer than the first event of a stream', async () => {
  const body = JSON.stringify(bodies['chat'])
  upstream.answer({ ...wholeChat, cutsAt: [body.length - 5], pauseMs: 400 })
  const { body: answered } = await ask('unstored response', 'chat', {}, impatient)
  expect(textOf(answered)).toBe(text)
})

test('but not longer than a generation', async () => {
  upstream.answer({ ...wholeChat, ending: 'silent' })
  const { status, body } = await ask('unstored response', 'chat', {}, brief)
  expect(status).toBe(504)
  expect(asRecord(body['error'])['code']).toBe('upstream_total_timeout')
})

test('a client that disconnects ends the request', async () => {
  upstream.answer({ ...wholeChat, ending: 'silent' })
  const { aborted } = upstream.connections
  const leaving = new AbortController()
  const body = JSON.stringify({ model: 'chat', input: 'x', store: false })
  const asked = gateway.request('/v1/responses', { method: 'POST', body, signal: leaving.signal })
  await upstream.until(() => sent().length === 1)
  leaving.abort()
  await expect(asked).rejects.toThrow()
  await upstream.until(({ connections }) => connections.aborted === aborted + 1)
})

describe('a whole response that is not complete is retried', () => {
  test.each<[string, ReplayAnswer]>([
    ['cut off', { ...wholeChat, ending: 'cut', body: JSON.stringify(bodies['chat']).slice(0, 40) }],
    ['with status 500', { ...json({}), status: 500 }],
    ['without choices', json({ object: 'chat.completion', choices: [] })],
  ])('%s', async (_, broken) => {
    upstream.answer(() => (sent().length === 1 ? broken : wholeChat))
    expect(textOf((await ask('unstored response', 'chat')).body)).toBe(text)
    expect(streams()).toEqual([false, false])
  })
})
