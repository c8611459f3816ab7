import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { checkMessageStream, isConformingStream } from '#test/support/message-frames.ts'
import {
  isOwnRecording,
  recordedBody,
  recordedBodyNames,
  recordedPayloads,
  recordedStream,
  recordedStreamNames,
} from '#test/support/recordings.ts'
import {
  type ReplayAnswer,
  type ReplayUpstream,
  startReplayUpstream,
} from '#test/support/replay-upstream.ts'
import { errorAnswer, messagesAnswer, streamOf } from '#test/support/strict-messages-upstream.ts'

/** Clients of /compat with a model at an upstream of the same protocol. */

const json = { 'content-type': 'application/json' }

let upstream: ReplayUpstream
let gateway: Gateway
let next: ((body: string) => ReplayAnswer) | null = null

beforeAll(async () => {
  upstream = await startReplayUpstream(({ body }) => (next ?? messagesAnswer)(body))
  const entry = { api: 'messages' as const, url: upstream.baseUrl, models: ['m'] }
  gateway = await startGateway({
    upstream: [
      { ...entry, name: 'one' },
      { ...entry, name: 'two', models: ['n'] },
    ],
    retry: { retriesMax: 0 },
  })
})
beforeEach(() => {
  next = null
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop()
})

const hi = { model: 'm', max_tokens: 5_000, messages: [{ role: 'user', content: 'Hi' }] }

function post(body: object, headers: Record<string, string> = {}): Promise<Response> {
  return gateway.request('/compat/v1/messages', {
    method: 'POST',
    headers: { ...json, ...headers },
    body: JSON.stringify({ ...hi, ...body }),
  })
}

async function stream(body: object = {}) {
  return checkMessageStream(await (await post({ stream: true, ...body })).text())
}

const sent = () => asRecord(parseJson(upstream.requests.at(-1)?.body ?? ''))

test('relayed requests keep their body, version and beta features', async () => {
  const body = {
    system: [{ type: 'text', text: 'Be kind.', cache_control: { type: 'ephemeral' } }],
    stop_sequences: ['END'],
    field_of_tomorrow: 1,
  }
  const headers = { 'anthropic-version': '2026-10-21', 'anthropic-beta': 'context-1m' }
  expect((await post(body, headers)).status).toBe(200)
  expect(sent()).toEqual({ ...hi, ...body, stream: true })
  expect(upstream.requests.at(-1)?.headers).toMatchObject(headers)
})

test("the model name and the message id are the gateway's", async () => {
  const { frames, message } = await stream({ model: 'vendor-model-m' })
  expect(sent()['model']).toBe('m')
  expect(asRecord(frames[0]?.['message'])).toMatchObject({ model: 'vendor-model-m' })
  expect(JSON.stringify(frames)).not.toContain('msg_upstream')
  expect(message).toMatchObject({ content: [{ type: 'text', text: 'Hello wörld' }] })
})

/** A message without the ids and seals that the gateway creates. */
function withoutOurs(payload: JsonObject): JsonObject {
  const { message, delta, content_block: block, content, ...rest } = payload
  const without = (value: unknown, ...names: string[]) =>
    Object.fromEntries(Object.entries(asRecord(value)).filter(([name]) => !names.includes(name)))
  return {
    ...without(rest, 'id', 'model'),
    message: without(message, 'id', 'model'),
    delta: without(delta, 'signature'),
    block: without(block, 'signature'),
    content: Array.isArray(content) ? content.map((each) => without(each, 'signature')) : [],
  }
}

/** Empty text before a call, or `end_turn` with a stop sequence. */
const corrected = /hosted_vllm-messages-tool-call|text-stop/

describe('recorded answers', () => {
  /** Others are corrected. */
  const isRelayable = (name: string) =>
    !isOwnRecording(name) || isConformingStream(recordedStream('messages', name))
  const whole = (name: string) => !/spliced|duplicate/.test(name) && isRelayable(name)

  test.each(recordedStreamNames('messages').filter(whole))(
    '%s is relayed unchanged',
    async (name) => {
      next = () => ({ body: recordedStream('messages', name) })
      const { frames } = await stream()
      const payloads = recordedPayloads('messages', name).map((text) => asRecord(parseJson(text)))
      const end = payloads.findIndex(({ type }) => type === 'message_stop')
      const came = payloads.slice(0, end + 1).filter(({ type }) => type !== 'ping')
      const got = frames.filter(({ type }) => type !== 'ping')
      expect(got.map(withoutOurs)).toEqual(came.map(withoutOurs))
    },
  )

  const bodies = recordedBodyNames('messages').filter((name) => !corrected.test(name))
  test.each(bodies)('%s is relayed unchanged', async (name) => {
    const body = recordedBody('messages', name)
    next = () => ({ body, headers: json })
    const answer = withoutOurs(asRecord(await (await post({})).json()))
    const { stop_reason: _, ...came } = withoutOurs(asRecord(parseJson(body)))
    expect(answer).toMatchObject(came)
  })
})

describe('thinking', () => {
  const weather = { name: 'get_weather', input_schema: { type: 'object' } }
  const asked = { tools: [weather], thinking: { type: 'enabled', budget_tokens: 2_000 } }
  const begin = { role: 'user', content: 'weather' }
  const seen = (id: unknown) => ({
    role: 'user',
    content: [{ type: 'tool_result', tool_use_id: id, content: 'cold' }],
  })
  const turn = async (body: object) => asRecord(await (await post({ ...asked, ...body })).json())
  const blocks = (message: JsonObject) =>
    Array.isArray(message['content']) ? message['content'].map(asRecord) : []

  test('are returned to their upstream with its signature, which clients never see', async () => {
    const first = blocks(await turn({ messages: [begin] }))
    expect(first.map(({ type }) => type)).toEqual(['thinking', 'redacted_thinking', 'tool_use'])
    expect(JSON.stringify(first)).not.toMatch(/sig-|b3BhcXVl/)
    const history = [begin, { role: 'assistant', content: first }, seen(first[2]?.['id'])]
    const second = blocks(await turn({ messages: history }))
    expect(second.at(-1)).toMatchObject({ text: 'It is cold.' })
    expect(JSON.stringify(sent())).toMatch(/sig-.*b3BhcXVl/)
  })

  test('are not sent to another model', async () => {
    const first = blocks(await turn({ messages: [begin] }))
    const history = [begin, { role: 'assistant', content: first }, seen(first[2]?.['id'])]
    const second = blocks(await turn({ model: 'n', messages: history }))
    expect(second).toMatchObject([{ type: 'text', text: 'It is cold.' }])
    expect(sent()).toMatchObject({ model: 'n', thinking: { type: 'disabled' } })
  })

  test('are signed in streams as in objects', async () => {
    const { message } = await stream({ ...asked, messages: [begin] })
    const first = blocks(message ?? {})
    const history = [begin, { role: 'assistant', content: first }, seen(first[2]?.['id'])]
    expect(blocks(await turn({ messages: history })).at(-1)).toMatchObject({ text: 'It is cold.' })
  })
})

describe('errors', () => {
  test.each([
    [400, 'invalid_request_error'],
    [402, 'billing_error'],
    [404, 'not_found_error'],
    [413, 'request_too_large'],
    [429, 'rate_limit_error'],
    [500, 'api_error'],
    [529, 'overloaded_error'],
  ] as const)('%d goes on byte for byte', async (status, type) => {
    const answer = errorAnswer(status, type, 'Said  so — ü.')
    next = () => answer
    const response = await post({ stream: true })
    expect(response.status).toBe(status)
    expect(await response.text()).toBe(String(answer.body))
    expect(response.headers.get('request-id')).toBeTruthy()
  })

  test('a rejected gateway credential is not relayed', async () => {
    next = () => errorAnswer(401, 'authentication_error', 'invalid x-api-key')
    const response = await post({})
    expect(response.status).toBe(502)
    expect(await response.text()).not.toContain('x-api-key')
  })

  test('an error in the middle of a block ends the block and is reported', async () => {
    const failure = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
    const body = streamOf([{ type: 'text', text: 'Hello there' }])
    const begun = body.slice(0, body.indexOf('event: content_block_stop'))
    next = () => ({ body: `${begun}event: error\ndata: ${JSON.stringify(failure)}\n\n` })
    const { error, frames } = await stream()
    expect(error).toMatchObject({ type: 'overloaded_error', message: 'Overloaded' })
    expect(frames.at(-2)?.type).toBe('content_block_stop')
  })
})
