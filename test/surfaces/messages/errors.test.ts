import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { begun, json, stopUpstreams, upstreamThat } from '#test/support/generations.ts'
import { checkMessageStream } from '#test/support/message-frames.ts'
import { readFailure } from '#test/support/refusals.ts'
import type { ReplayAnswer, ReplayUpstream } from '#test/support/replay-upstream.ts'

/** Failures of a translated upstream on the Messages surface. */

let upstream: ReplayUpstream
let gateway: Gateway
let shortDeadlines: Gateway
let full: Gateway

beforeAll(async () => {
  upstream = await upstreamThat({})
  const upstreamEntry = { url: upstream.baseUrl, key: 'an-upstream-credential', models: ['m'] }
  const retry = { retriesMax: 0 }
  gateway = await startGateway({ upstream: [upstreamEntry], retry })
  // A whole response has no first event.
  const streaming = { ...upstreamEntry, unstreamed: false }
  shortDeadlines = await startGateway({
    upstream: [streaming],
    retry,
    deadlines: { firstEventMs: 50 },
  })
  full = await startGateway({ upstream: [upstreamEntry], retry, limits: { streamsMax: 1 } })
})
afterAll(async () => {
  for (const started of [gateway, shortDeadlines, full]) await started.stop()
  await stopUpstreams()
})

const ways = [
  { way: 'streaming', stream: true },
  { way: 'without streaming', stream: false },
]
const ask = (from: Gateway, stream: boolean) =>
  from.post('/compat/v1/messages', {
    model: 'm',
    max_tokens: 10,
    stream,
    messages: [{ role: 'user', content: 'Hi.' }],
  })

const refused = (status: number, error: object, headers: object = {}): ReplayAnswer => ({
  status,
  headers: { ...json, ...headers },
  body: JSON.stringify({ error }),
})

type ExpectedError = { status: number; type: string; message?: string; retry: string }

const cases: [what: string, response: ReplayAnswer, expected: ExpectedError][] = [
  [
    'a refusal of the request',
    refused(400, { message: 'No such parameter.', code: 'bad_parameter' }),
    { status: 400, type: 'invalid_request_error', message: 'No such parameter.', retry: 'false' },
  ],
  [
    'a limit',
    refused(429, { message: 'Slow down.' }, { 'retry-after': '7' }),
    { status: 429, type: 'rate_limit_error', message: 'Slow down.', retry: 'true' },
  ],
  [
    'an exhausted quota',
    refused(429, { message: 'No credit.', code: 'insufficient_quota' }),
    { status: 402, type: 'billing_error', message: 'No credit.', retry: 'false' },
  ],
  [
    'an overloaded upstream',
    refused(503, { message: 'Busy.' }),
    { status: 529, type: 'overloaded_error', message: 'Busy.', retry: 'true' },
  ],
  [
    'a crash',
    refused(500, { message: 'Out of memory.' }),
    { status: 502, type: 'api_error', message: 'Out of memory.', retry: 'false' },
  ],
  [
    'a refused upstream credential',
    refused(401, { message: 'Wrong key an-upstream-credential.' }),
    { status: 502, type: 'api_error', retry: 'false' },
  ],
  [
    'an invalid stream',
    { body: 'data: nonsense\n\n' },
    { status: 502, type: 'api_error', retry: 'false' },
  ],
]

describe.each(ways)('before the first output, $way', ({ stream }) => {
  test.each(cases)('%s is an HTTP status', async (_, response, expected) => {
    upstream.answer(response)
    const failure = await readFailure(await ask(gateway, stream), gateway)
    const { status, type } = failure
    expect({ status, type }).toEqual({ status: expected.status, type: expected.type })
    if (expected.message !== undefined) expect(failure.message).toBe(expected.message)
    expect(failure.headers.get('x-should-retry')).toBe(expected.retry)
    expect(failure.seen).not.toContain('an-upstream-credential')
  })

  test('Retry-After is passed on', async () => {
    upstream.answer(refused(429, { message: 'Slow down.' }, { 'retry-after': '7' }))
    expect((await ask(gateway, stream)).headers.get('retry-after')).toBe('7')
  })

  test('a silent upstream is a timeout', async () => {
    upstream.answer({ ending: 'silent' })
    const { status, type, code } = await readFailure(
      await ask(shortDeadlines, stream),
      shortDeadlines,
    )
    expect([status, type, code]).toEqual([504, 'timeout_error', 'upstream_first_event_timeout'])
  })

  test('a server at capacity is overloaded', async () => {
    upstream.answer({ ending: 'silent' })
    const leaving = new AbortController()
    const before = upstream.requests.length
    const first = full.request('/compat/v1/messages', {
      method: 'POST',
      signal: leaving.signal,
      body: JSON.stringify({
        model: 'm',
        max_tokens: 10,
        messages: [{ role: 'user', content: 'Hi.' }],
      }),
    })
    await upstream.until(({ requests }) => requests.length > before)
    const failure = await readFailure(await ask(full, stream), full)
    expect([failure.status, failure.type]).toEqual([529, 'overloaded_error'])
    expect(failure.headers.get('retry-after')).toBe('1')
    leaving.abort()
    await first.catch(() => {})
    await upstream.until(({ connections }) => connections.aborted > 0)
  })

  const limit = "This model's maximum context length is 4096 tokens. However, "
  test.each([
    [`${limit}you requested 5,000 tokens.`, '5000 tokens > 4096 maximum'],
    [`${limit}your messages resulted in 5000 tokens.`, '5000 tokens > 4096 maximum'],
    [
      'request (5000 tokens) exceeds the available context size (4096 tokens)',
      '5000 tokens > 4096 maximum',
    ],
    [
      'The request exceeds the available context size.',
      'The request exceeds the available context size.',
    ],
    [
      'You passed 4000 input tokens, but the maximum context length is 4096 with the output.',
      'You passed 4000 input tokens, but the maximum context length is 4096 with the output.',
    ],
  ])('a prompt that is too long has the message that clients parse: %s', async (message, words) => {
    upstream.answer(refused(400, { message }))
    const failure = await readFailure(await ask(gateway, stream), gateway)
    expect([failure.status, failure.type]).toEqual([400, 'invalid_request_error'])
    expect(failure.message).toBe(`prompt is too long: ${words}`)
    expect(failure.code).toBe('context_length_exceeded')
  })

  test('and such a message of an upstream is unchanged', async () => {
    const message = 'prompt is too long: 5 tokens > 4 maximum'
    upstream.answer(refused(400, { message }))
    expect((await readFailure(await ask(gateway, stream), gateway)).message).toBe(message)
  })
})

describe('after the first output', () => {
  test('a failure of a stream is one error event, the last one', async () => {
    upstream.answer({ body: begun, ending: 'cut' })
    const answer = await ask(gateway, true)
    expect(answer.status).toBe(200)
    const { frames, error } = checkMessageStream(await answer.text())
    expect(error).toMatchObject({ type: 'api_error' })
    expect(frames.filter(({ type }) => type === 'error')).toHaveLength(1)
    expect(frames.at(-1)?.type).toBe('error')
  })

  test('without streaming it is an HTTP status', async () => {
    upstream.answer({ body: begun, ending: 'cut' })
    const { status, type } = await readFailure(await ask(gateway, false), gateway)
    expect([status, type]).toEqual([502, 'api_error'])
  })
})

describe('a client without access', () => {
  const body = JSON.stringify({ model: 'm', max_tokens: 1, messages: [] })
  const post = (headers: Record<string, string>) =>
    fetch(`${gateway.url}/compat/v1/messages`, { method: 'POST', headers, body })

  test.each([
    ['no credential', {}, 'missing_credentials'],
    ['an invalid API key', { 'x-api-key': 'sk-ant-api03-x' }, 'invalid_api_key'],
    ['an invalid bearer token', { authorization: 'Bearer sk-ant-oat01-x' }, 'invalid_token'],
  ])('gets an authentication error for %s', async (_, headers, code) => {
    const failure = await readFailure(await post(headers as Record<string, string>), gateway)
    expect([failure.status, failure.type, failure.code]).toEqual([
      401,
      'authentication_error',
      code,
    ])
  })

  test('gets a permission error', async () => {
    const authorization = `Bearer ${await gateway.token(['strangers'])}`
    const failure = await readFailure(await post({ authorization }), gateway)
    expect([failure.status, failure.type]).toEqual([403, 'permission_error'])
  })
})
