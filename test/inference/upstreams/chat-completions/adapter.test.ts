import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chatCompletions } from '#inference/upstreams/chat-completions/adapter.ts'
import { chunk } from '#test/support/chat-decoding.ts'
import { collectEvents, makeContext, makeRequest } from '#test/support/generation.ts'
import { chatStream, recordedStream, recordedStreamNames } from '#test/support/recordings.ts'
import {
  type ReplayAnswer,
  type ReplayUpstream,
  startReplayUpstream,
} from '#test/support/replay-upstream.ts'

let upstream: ReplayUpstream
beforeEach(async () => {
  upstream = await startReplayUpstream({ status: 500 })
})
afterEach(() => upstream.stop())

const text = chunk({ content: 'Hello' })
const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
const whole = chatStream([text, chunk({}, 'stop'), { choices: [], usage }])

function generate(answer: ReplayAnswer, signal = new AbortController().signal) {
  upstream.answer(answer)
  const context = makeContext({ baseUrl: upstream.baseUrl, signal })
  return chatCompletions.generate(makeRequest(), context)
}

const collect = (answer: ReplayAnswer) => collectEvents(generate(answer))

describe('the request', () => {
  test("is a POST of the encoded body with the upstream's credential", async () => {
    await collect({ body: whole })
    const [request] = upstream.requests
    expect(request?.method).toBe('POST')
    expect(request?.path).toBe('/v1/chat/completions')
    expect(request?.headers).toMatchObject({
      authorization: 'Bearer a-secret',
      accept: 'text/event-stream',
      'content-type': 'application/json',
    })
    expect(JSON.parse(request?.body ?? '')).toEqual({
      model: 'upstream-model',
      messages: [{ role: 'user', content: 'Hello' }],
      stream: true,
      stream_options: { include_usage: true },
    })
  })

  test('is not sent if it cannot be encoded', async () => {
    const request = makeRequest({ toolChoice: { type: 'required' } })
    const context = makeContext({ baseUrl: upstream.baseUrl })
    const { error } = await collectEvents(chatCompletions.generate(request, context))
    expect(error?.kind).toBe('invalid_request')
    expect(upstream.requests).toEqual([])
  })
})

describe('a response', () => {
  test('arrives in pieces', async () => {
    const { events, error } = await collect({ body: whole, cutsAt: [1, 50, 51, 200] })
    expect(error).toBeNull()
    expect(events.map(({ type }) => type)).toEqual([
      'generation-start',
      'text-start',
      'text-delta',
      'text-end',
      'finish',
    ])
  })

  test('may be one JSON body instead of a stream', async () => {
    const message = { role: 'assistant', content: 'Hello' }
    const { events, error } = await collect({
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }], usage }),
    })
    expect(error).toBeNull()
    expect(events).toContainEqual({ type: 'text-delta', block: 0, text: 'Hello' })
    expect(events.at(-1)).toMatchObject({ type: 'finish', usage: { totalTokens: 2 } })
  })

  test('is complete without [DONE]', async () => {
    const body = whole.replace('data: [DONE]\n\n', '')
    const { events, error } = await collect({ body })
    expect(error).toBeNull()
    expect(events.at(-1)).toMatchObject({ type: 'finish', reason: 'stop' })
  })

  test('is complete although the upstream hangs after its usage', async () => {
    const body = whole.replace('data: [DONE]\n\n', '')
    const { events, error } = await collect({ body, ending: 'hang' })
    expect(error).toBeNull()
    expect(events.at(-1)).toMatchObject({ type: 'finish', usage: { totalTokens: 2 } })
  })

  test('is complete although the upstream hangs after its finish reason', async () => {
    const body = chatStream([text, chunk({}, 'stop')]).replace('data: [DONE]\n\n', '')
    const { events, error } = await collect({ body, ending: 'hang' })
    expect(error).toBeNull()
    expect(events.at(-1)).toMatchObject({ type: 'finish', reason: 'stop', usage: null })
  })
})

describe('a failure', () => {
  test.each<[string, ReplayAnswer, string]>([
    ['a page', { headers: { 'content-type': 'text/html' }, body: '<html>' }, 'upstream_invalid'],
    [
      'an error in a 200',
      {
        headers: { 'content-type': 'application/json' },
        body: '{"error":{"message":"no GPU","code":503}}',
      },
      'upstream_overloaded',
    ],
    ['an error in the stream', { body: 'data: {"error":{"message":"x"}}\n\n' }, 'upstream_error'],
    ['an empty stream', { body: '' }, 'upstream_truncated'],
    ['JSON of something else', jsonAnswer({ status: 'ok' }), 'upstream_invalid'],
    ['500', { status: 500, body: '{"error":{"message":"x"}}' }, 'upstream_error'],
    ['503', { status: 503, body: 'busy' }, 'upstream_overloaded'],
    ['429', { status: 429, headers: { 'retry-after': '7' } }, 'rate_limit_exceeded'],
    ['400', { status: 400, body: '{"error":{"message":"bad","param":"x"}}' }, 'invalid_request'],
    ['401', { status: 401, body: '{"error":"bad key"}' }, 'upstream_refused'],
    ['404', { status: 404, body: '{"detail":"Not Found"}' }, 'upstream_refused'],
  ])('%s is thrown before any event', async (_, answer, kind) => {
    const { events, error } = await collect(answer)
    expect(events).toEqual([])
    expect(error?.kind).toStartWith(kind)
  })

  test('Retry-After is kept', async () => {
    const { error } = await collect({ status: 429, headers: { 'retry-after': '7' } })
    expect(error?.retryAfterS).toBe(7)
  })

  const half = whole.slice(0, whole.indexOf('"stop"'))

  test('a body that ends early is truncated after its content', async () => {
    const { events, error } = await collect({ body: half })
    expect(events.at(-1)).toEqual({ type: 'text-delta', block: 0, text: 'Hello' })
    expect(error?.kind).toBe('upstream_truncated')
  })

  test('a connection that is cut is truncated after its content', async () => {
    const batches = generate({ body: half, ending: 'hang' })[Symbol.asyncIterator]()
    const first = await batches.next()
    expect(first.value).toContainEqual({ type: 'text-delta', block: 0, text: 'Hello' })
    upstream.cut()
    await expect(batches.next()).rejects.toMatchObject({ kind: 'upstream_truncated' })
  })
})

describe('the upstream connection is closed', () => {
  test('when the signal aborts before the response', async () => {
    const controller = new AbortController()
    const collected = collectEvents(generate({ ending: 'silent' }, controller.signal))
    await upstream.until(({ requests }) => requests.length === 1)
    controller.abort()
    expect((await collected).events).toEqual([])
    await upstream.until(({ connections }) => connections.aborted === 1)
  })

  test('when the signal aborts during the response', async () => {
    const controller = new AbortController()
    const body = chatStream([text]).replace('data: [DONE]\n\n', '')
    const batches = generate({ body, ending: 'hang' }, controller.signal)[Symbol.asyncIterator]()
    await batches.next()
    const rest = batches.next()
    controller.abort()
    await expect(rest).rejects.toThrow()
    await upstream.until(({ connections }) => connections.aborted === 1)
  })

  test('when the consumer stops', async () => {
    const body = chatStream([text]).replace('data: [DONE]\n\n', '')
    for await (const _ of generate({ body, ending: 'hang' })) break
    await upstream.until(({ connections }) => connections.aborted === 1)
  })
})

test("models are listed with the server's metadata", async () => {
  upstream.answer(
    jsonAnswer({
      data: [
        { id: 'a', created: 7, owned_by: 'vllm', max_model_len: 8192 },
        { id: 'b', context_length: 4096 },
        { id: 'c', meta: { n_ctx_train: 2048 } },
        { name: 'no id' },
      ],
    }),
  )
  expect(await chatCompletions.listModels(makeContext({ baseUrl: upstream.baseUrl }))).toEqual([
    { id: 'a', created: 7, ownedBy: 'vllm', contextWindow: 8192 },
    { id: 'b', created: null, ownedBy: null, contextWindow: 4096 },
    { id: 'c', created: null, ownedBy: null, contextWindow: 2048 },
  ])
  expect(upstream.requests[0]).toMatchObject({ method: 'GET', path: '/v1/models' })
})

test.each(recordedStreamNames('chat-completions'))(
  '%s keeps the grammar over a socket',
  async (name) => {
    const body = recordedStream('chat-completions', name)
    const cutsAt = Array.from({ length: 20 }, (_, place) => (place + 1) * 97)
    const { events, error } = await collect({ body, cutsAt })
    expect(error).toBeNull()
    expect(events.at(-1)?.type).toBe('finish')
  },
)

function jsonAnswer(body: object): ReplayAnswer {
  return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}
