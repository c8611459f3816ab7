import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { recordedStream, recordedStreamNames } from '#test/support/recordings.ts'
import {
  type ReplayAnswer,
  type ReplayUpstream,
  startReplayUpstream,
} from '#test/support/replay-upstream.ts'
import { checkStream } from '#test/support/response-frames.ts'
import { errorAnswer, messagesAnswer, streamOf } from '#test/support/strict-messages-upstream.ts'

/** Clients of /v1/responses with a model at a Messages upstream that validates requests. */

const list = { headers: { 'content-type': 'application/json' }, body: '{"data":[{"id":"m"}]}' }

let upstream: ReplayUpstream
let gateway: Gateway
let next: ((body: string) => ReplayAnswer) | null = null

beforeAll(async () => {
  upstream = await startReplayUpstream(({ path, body }) =>
    path.includes('/models') ? list : (next ?? messagesAnswer)(body),
  )
  gateway = await startGateway({
    upstream: [{ api: 'messages', url: upstream.baseUrl, key: 'key-there' }],
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

type Answer = { status: number; body: JsonObject; output: JsonObject[] }

async function respond(body: object): Promise<Answer> {
  const response = await gateway.post('/v1/responses', { model: 'm', store: false, ...body })
  const parsed = asRecord(await response.json())
  const output = Array.isArray(parsed['output']) ? parsed['output'].map(asRecord) : []
  return { status: response.status, body: parsed, output }
}

async function stream(body: object) {
  const given = { model: 'm', store: false, stream: true, ...body }
  return checkStream(await (await gateway.post('/v1/responses', given)).text())
}

const textOf = (output: readonly JsonObject[]) =>
  output
    .flatMap(({ content }) => (Array.isArray(content) ? content.map(asRecord) : []))
    .map((part) => part['text'] ?? '')
    .join('')

const sent = () => asRecord(parseJson(upstream.requests.at(-1)?.body ?? ''))

const weather = {
  type: 'function',
  name: 'get_weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
}

describe('text', () => {
  test('is returned whole with its usage', async () => {
    const { body, output } = await respond({ input: 'Hi', instructions: 'Be kind.' })
    expect(textOf(output)).toBe('Hello wörld')
    expect(body['usage']).toEqual({
      input_tokens: 13,
      input_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 },
      output_tokens: 3,
      output_tokens_details: { reasoning_tokens: 1 },
      total_tokens: 16,
    })
    expect(sent()).toMatchObject({ model: 'm', system: 'Be kind.', max_tokens: 32_000 })
    expect(upstream.requests.at(-1)?.headers['x-api-key']).toBe('key-there')
  })

  test('is streamed', async () => {
    const { response } = await stream({ input: 'Hi', max_output_tokens: 50 })
    expect(response).toMatchObject({ status: 'completed', output: [{ type: 'message' }] })
    expect(sent()['max_tokens']).toBe(50)
  })

  test('of every role reaches the model', async () => {
    const input = [
      { role: 'developer', content: 'Speak Norwegian.' },
      { role: 'user', content: 'One' },
      { role: 'assistant', content: 'Two' },
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'recall' },
    ]
    const { output } = await respond({ input, instructions: 'Be kind.' })
    expect(textOf(output)).toBe(
      'system said Be kind.\n\nSpeak Norwegian.; user said One; assistant said Two; user said [System instruction]\nBe brief. recall',
    )
  })
})

describe('tools', () => {
  const begin = { role: 'user', content: 'parallel weather' }

  test('are called in parallel, and their results form the next turn', async () => {
    const first = await respond({ input: [begin], tools: [weather] })
    const calls = first.output.filter(({ type }) => type === 'function_call')
    expect(calls).toMatchObject([
      { call_id: 'toolu_a', name: 'get_weather', arguments: '{"city":"Oslo"}' },
      { call_id: 'toolu_b', name: 'get_weather', arguments: '{"city":"Rome"}' },
    ])
    const results = calls.map(({ call_id }, at) => ({
      type: 'function_call_output',
      call_id,
      output: at === 0 ? 'cold' : 'warm',
    }))
    const input = [begin, ...first.output, ...results.toReversed()]
    const { response } = await stream({ input, tools: [weather] })
    expect(textOf((response['output'] as JsonObject[]) ?? [])).toBe('It is cold and warm.')
  })

  test('of another upstream keep unique ids', async () => {
    const call = (call_id: string) => [
      { type: 'function_call', call_id, name: 'get_weather', arguments: '{}' },
      { type: 'function_call_output', call_id, output: 'cold' },
    ]
    const input = [begin, ...call('functions.get_weather:0'), ...call('functions.get_weather:1')]
    const { output, status } = await respond({ input, tools: [weather] })
    expect([status, textOf(output)]).toEqual([200, 'It is cold.'])
  })
})

describe('reasoning', () => {
  const asked = { reasoning: { effort: 'low' }, include: ['reasoning.encrypted_content'] }
  const begin = { role: 'user', content: 'weather' }

  test('is returned sealed to its model in a continued turn', async () => {
    const first = await respond({ input: [begin], tools: [weather], ...asked })
    expect(first.output.map(({ type }) => type)).toEqual([
      'reasoning',
      'reasoning',
      'function_call',
    ])
    expect(JSON.stringify(first.body)).not.toContain('sig-')
    const result = { type: 'function_call_output', call_id: 'toolu_a', output: 'cold' }
    const second = await respond({
      input: [begin, ...first.output, result],
      tools: [weather],
      ...asked,
    })
    expect([second.status, textOf(second.output.slice(2))]).toEqual([200, 'It is cold.'])
    expect(sent()).toMatchObject({ thinking: { type: 'enabled', budget_tokens: 2_048 } })
    expect(JSON.stringify(sent())).toContain('redacted_thinking')
  })

  test('of another model is not sent, and the turn continues without it', async () => {
    const foreign = { type: 'reasoning', summary: [], encrypted_content: 'gAAAAB' }
    const call = { type: 'function_call', call_id: 'c1', name: 'get_weather', arguments: '{}' }
    const result = { type: 'function_call_output', call_id: 'c1', output: 'cold' }
    const input = [begin, foreign, call, result]
    const { status } = await respond({ input, tools: [weather], ...asked })
    expect(status).toBe(200)
    expect(sent()).not.toHaveProperty('thinking')
  })
})

describe('structured output', () => {
  const schema = {
    type: 'object',
    properties: { answer: { type: 'integer' } },
    required: ['answer'],
    additionalProperties: false,
  }

  test('is requested by an instruction and validated', async () => {
    const text = { format: { type: 'json_schema', name: 'reply', schema } }
    const { body, output } = await respond({ input: 'In JSON please', text })
    expect([body['status'], textOf(output)]).toEqual(['completed', '{"answer":42}'])
    expect(sent()['system']).toContain(JSON.stringify(schema))
  })
})

describe('errors', () => {
  test.each([
    [400, 'invalid_request_error', 'temperature: gone', 400, 'invalid_request'],
    [400, 'invalid_request_error', 'prompt is too long: 9 > 8', 400, 'context_length_exceeded'],
    [401, 'authentication_error', 'invalid x-api-key', 502, 'upstream_refused'],
    [429, 'rate_limit_error', 'slow down', 429, 'rate_limit_exceeded'],
    [529, 'overloaded_error', 'Overloaded', 503, 'upstream_overloaded'],
  ])('%d %s %p becomes %d', async (from, type, message, status, code) => {
    next = () => errorAnswer(from, type, message)
    const answer = await respond({ input: 'Hi' })
    expect(answer.status).toBe(status)
    expect(answer.body).toMatchObject({ error: { code } })
  })

  test('in a stream fail the response', async () => {
    const failure = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
    const whole = streamOf([{ type: 'text', text: 'Hello there' }])
    const begun = whole.slice(0, whole.indexOf('event: content_block_stop'))
    next = () => ({ body: `${begun}event: error\ndata: ${JSON.stringify(failure)}\n\n` })
    const { response } = await stream({ input: 'Hi' })
    expect(response).toMatchObject({
      status: 'failed',
      error: { code: 'upstream_overloaded', message: 'Overloaded' },
    })
  })
})

describe('recorded streams', () => {
  const names = recordedStreamNames('messages').filter((name) => !name.startsWith('spliced'))

  test.each(names)('%s is a response that strict clients can read', async (name) => {
    next = () => ({ body: recordedStream('messages', name) })
    const { response } = await stream({ input: 'Hi', tools: [weather] })
    expect(['completed', 'incomplete']).toContain(String(response['status']))
  })
})
