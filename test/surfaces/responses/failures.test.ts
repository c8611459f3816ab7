import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { json, stopUpstreams, twice, upstreamThat, whole } from '#test/support/generations.ts'
import { logOf, readFailure } from '#test/support/refusals.ts'
import type { ReplayAnswer, ReplayUpstream } from '#test/support/replay-upstream.ts'
import { checkStream } from '#test/support/response-frames.ts'

/** Failures of an upstream before its first output are an HTTP status. */

const upstreamKey = 'an-upstream-credential'
const ways = [
  { way: 'streaming', stream: true },
  { way: 'without streaming', stream: false },
]

let upstream: ReplayUpstream
let gateway: Gateway
/** Short deadlines. */
let shortDeadlines: Gateway
/** Long deadlines with short waits. */
let brief: Gateway

beforeAll(async () => {
  upstream = await upstreamThat({})
  const upstreamEntry = { url: upstream.baseUrl, key: upstreamKey, models: ['m'] }
  gateway = await startGateway({ upstream: [upstreamEntry], retry: { retryAfterMaxMs: 1_000 } })
  // A whole response has no first event.
  const streaming = { ...upstreamEntry, unstreamed: false }
  shortDeadlines = await startGateway({ upstream: [streaming], deadlines: { firstEventMs: 50 } })
  brief = await startGateway({ upstream: [upstreamEntry], deadlines: { totalMs: 50 } })
})
afterAll(async () => {
  for (const started of [gateway, shortDeadlines, brief]) await started.stop()
  await stopUpstreams()
})

const ask = (from: Gateway, stream: boolean) =>
  from.post('/v1/responses', { model: 'm', input: 'x', stream })

function expectNothingInternal(seen: string): void {
  expect(seen).not.toContain(upstreamKey)
  expect(seen).not.toContain(new URL(upstream.baseUrl).port)
  expect(seen).not.toContain('127.0.0.1')
}

/** Returns the responses in order, and repeats the last one. */
function script(...answers: ReplayAnswer[]): { asked: () => number } {
  const before = upstream.requests.length
  const queue = [...answers]
  upstream.answer(() => (queue.length > 1 ? queue.shift() : queue[0]) ?? {})
  return { asked: () => upstream.requests.length - before }
}

const refused = (status: number, error: object, headers: object = {}): ReplayAnswer => ({
  status,
  headers: { ...json, ...headers },
  body: JSON.stringify({ error }),
})

type Case = {
  what: string
  answer: ReplayAnswer
  /** The gateway under test; it has other deadlines. */
  by?: () => Gateway
  expected: [status: number, code: string]
  /** `x-should-retry` */
  retry: string
  asked: number
}

const cases: Case[] = [
  {
    what: 'HTML',
    answer: { headers: { 'content-type': 'text/html' }, body: '<h1>It works</h1>' },
    expected: [502, 'upstream_invalid_answer'],
    retry: 'false',
    asked: 1,
  },
  {
    what: 'a response that is not an event stream',
    answer: { headers: json, body: 'all is well' },
    expected: [502, 'upstream_invalid_answer'],
    retry: 'false',
    asked: 1,
  },
  {
    what: '200 with an error object',
    answer: { headers: json, body: '{"error":{"message":"bad luck"}}' },
    expected: [502, 'upstream_error'],
    retry: 'false',
    asked: 4,
  },
  {
    what: 'an error object in the stream',
    answer: { body: 'data: {"error":{"message":"bad luck","code":"ill"}}\n\n' },
    expected: [502, 'ill'],
    retry: 'false',
    asked: 4,
  },
  {
    what: 'a stream that ends before its first event',
    answer: { body: 'data: {"choices":[]}\n\n' },
    expected: [502, 'server_error'],
    retry: 'false',
    asked: 4,
  },
  {
    what: 'a body cut off before its first event',
    answer: { body: 'data: {"choi', ending: 'cut' },
    expected: [502, 'server_error'],
    retry: 'false',
    asked: 4,
  },
  {
    what: '500 for ever',
    answer: refused(500, { message: 'out of memory' }),
    expected: [502, 'upstream_error'],
    retry: 'false',
    asked: 4,
  },
  {
    what: '503',
    answer: refused(503, { message: 'full' }),
    expected: [503, 'upstream_overloaded'],
    retry: 'true',
    asked: 4,
  },
  {
    what: '429 with a long Retry-After',
    answer: refused(429, { message: 'slow down' }, { 'retry-after': '30' }),
    expected: [429, 'rate_limit_exceeded'],
    retry: 'true',
    asked: 1,
  },
  {
    what: 'a prompt that is too long',
    answer: refused(400, { message: "This model's maximum context length is 8192 tokens." }),
    expected: [400, 'context_length_exceeded'],
    retry: 'false',
    asked: 1,
  },
  {
    what: 'a refused request',
    answer: refused(422, { message: 'No.', code: 'odd', param: 'top_k' }),
    expected: [400, 'odd'],
    retry: 'false',
    asked: 1,
  },
  {
    what: 'a refused upstream credential that the error quotes',
    answer: refused(401, { message: `Wrong key ${upstreamKey} at 127.0.0.1` }),
    expected: [502, 'upstream_refused'],
    retry: 'false',
    asked: 1,
  },
  {
    what: 'an unknown upstream model',
    answer: refused(404, { message: 'no such model' }),
    expected: [502, 'upstream_refused'],
    retry: 'false',
    asked: 1,
  },
  {
    what: 'silence before the headers',
    answer: { ending: 'silent' },
    by: () => shortDeadlines,
    expected: [504, 'upstream_first_event_timeout'],
    retry: 'false',
    asked: 1,
  },
  {
    what: 'silence after the headers',
    answer: { body: ': wait\n\n', ending: 'hang' },
    by: () => shortDeadlines,
    expected: [504, 'upstream_first_event_timeout'],
    retry: 'false',
    asked: 1,
  },
  {
    what: 'silence until the total timeout',
    answer: { ending: 'silent' },
    by: () => brief,
    expected: [504, 'upstream_total_timeout'],
    retry: 'false',
    asked: 1,
  },
]

describe.each(ways)('$way', ({ stream }) => {
  test.each(cases)('$what', async ({ answer, by, expected, retry, asked }) => {
    const upstreamScript = script(answer)
    const from = by?.() ?? gateway
    const failure = await readFailure(await ask(from, stream), from)
    expect([failure.status, failure.code]).toEqual(expected)
    expect(failure.headers.get('x-should-retry')).toBe(retry)
    // On a busy machine a short deadline ends before the upstream is called.
    expect(upstreamScript.asked()).toBeWithin(by === undefined ? asked : 0, asked + 1)
    expectNothingInternal(failure.seen)
    const requestId = failure.headers.get('x-request-id') ?? ''
    const ends = logOf(from, requestId)
    expect(ends).toMatchObject([{ outcome: 'failed', retries: asked - 1, upstream: 'upstream-0' }])
    expect(from.deps.inference.running()).toBe(0)
  })

  test('429 has a Retry-After', async () => {
    script(refused(429, { message: 'slow down' }, { 'retry-after': '30' }))
    const { headers } = await readFailure(await ask(gateway, stream), gateway)
    expect(headers.get('retry-after')).toBe('30')
  })

  test('a refused connection', async () => {
    const gone = await upstreamThat({})
    await gone.stop()
    const lonely = await startGateway({ upstream: [{ url: gone.baseUrl, models: ['m'] }] })
    const failure = await readFailure(await ask(lonely, stream), lonely)
    expect([failure.status, failure.code]).toEqual([502, 'upstream_unreachable'])
    expect(failure.headers.get('x-should-retry')).toBe('false')
    expect(failure.seen).not.toContain(new URL(gone.baseUrl).port)
    await lonely.stop()
  })

  test('500 three times is hidden by a successful fourth attempt', async () => {
    const ill = { status: 500 }
    const upstreamScript = script(ill, ill, ill, { body: whole })
    const answer = await ask(gateway, stream)
    expect(answer.status).toBe(200)
    const response = stream ? checkStream(await answer.text()).response : await answer.json()
    expect(response).toMatchObject({
      status: 'completed',
      output: [{ content: [{ text: 'one two' }] }],
    })
    expect(upstreamScript.asked()).toBe(4)
  })

  test('a short Retry-After is respected', async () => {
    const full = refused(429, { message: 'slow down' }, { 'retry-after': '0.05' })
    const upstreamScript = script(full, { body: whole })
    const answer = await ask(gateway, stream)
    expect(answer.status).toBe(200)
    await answer.text()
    expect(upstreamScript.asked()).toBe(2)
  })

  test('a second finish is ignored', async () => {
    script({ body: twice })
    const answer = await ask(gateway, stream)
    const response = stream ? checkStream(await answer.text()).response : await answer.json()
    expect(response).toMatchObject({
      status: 'completed',
      output: [{ content: [{ text: 'one' }] }],
    })
  })

  test('a third upstream is tried when two are down', async () => {
    const down = await upstreamThat({ status: 500 })
    const missing = await upstreamThat({ status: 404 })
    script({ body: whole })
    const lucky = await startGateway({
      upstream: [down, missing, upstream].map(({ baseUrl }) => ({ url: baseUrl, models: [] })),
      model: [{ name: 'm', upstreams: ['upstream-0', 'upstream-1', 'upstream-2'] }],
    })
    const answer = await ask(lucky, stream)
    expect(answer.status).toBe(200)
    await answer.text()
    expect([down.requests.length, missing.requests.length]).toEqual([1, 1])
    await lucky.stop()
  })
})
