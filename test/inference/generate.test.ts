import { afterEach, expect, test } from 'bun:test'
import type { AppError } from '#lib/errors.ts'
import {
  begun,
  collect,
  failure,
  json,
  start,
  stopUpstreams,
  target,
  texts,
  twice,
  upstreamThat,
  whole,
} from '#test/support/generations.ts'

afterEach(stopUpstreams)

test('a generation is settled once with its record', async () => {
  const upstream = await upstreamThat({ body: whole })
  const { inference, records, run } = start()
  expect(texts(await collect(run([target(upstream.baseUrl)])))).toBe('one two')
  expect(inference.running()).toBe(0)
  expect(records).toMatchObject([
    {
      requestId: 'req_1',
      model: 'asked-name',
      target: { upstream: { name: 'first' } },
      outcome: 'completed',
      retries: 0,
      error: null,
    },
  ])
  expect(JSON.parse(upstream.requests[0]?.body ?? '').model).toBe('upstream-name')
})

test('three times status 500, then a response: the client receives only the response', async () => {
  const upstream = await upstreamThat(
    { status: 500 },
    { status: 500 },
    { status: 500 },
    { body: whole },
  )
  const { records, run } = start()
  expect(texts(await collect(run([target(upstream.baseUrl)])))).toBe('one two')
  expect(upstream.requests).toHaveLength(4)
  expect(records).toMatchObject([{ outcome: 'completed', retries: 3 }])
})

test('a fourth failure is reported without further retries', async () => {
  const upstream = await upstreamThat({
    status: 500,
    headers: json,
    body: '{"error":{"message":"out of memory"}}',
  })
  const { records, run } = start()
  const error = await failure(run([target(upstream.baseUrl)]))
  expect([error.kind, error.status, error.message]).toEqual([
    'upstream_error',
    502,
    'out of memory',
  ])
  expect(upstream.requests).toHaveLength(4)
  expect(records).toMatchObject([{ outcome: 'failed', retries: 3 }])
})

test.each([
  [
    'an error object in a 200 stream',
    { body: 'data: {"error":{"message":"bad luck"}}\n\n' },
    'upstream_error',
  ],
  [
    'an error object in a 200 JSON answer',
    { headers: json, body: '{"error":{"message":"bad luck"}}' },
    'upstream_error',
  ],
  [
    'a body cut before any output',
    { body: ': hello\n\n', ending: 'cut' as const },
    'upstream_truncated',
  ],
  ['an end without a finish reason', { body: 'data: {"choices":[]}\n\n' }, 'upstream_truncated'],
])('%s is retried before any output', async (_name, answer, kind) => {
  const healed = await upstreamThat(answer, { body: whole })
  expect(texts(await collect(start().run([target(healed.baseUrl)])))).toBe('one two')
  const ill = await upstreamThat(answer)
  expect((await failure(start().run([target(ill.baseUrl)]))).kind).toBe(kind as AppError['kind'])
})

test.each([
  [400, '{"error":{"message":"bad","param":"x","code":"c"}}', 'invalid_request', 400],
  [
    400,
    '{"error":{"message":"This model\'s maximum context length is 8 tokens"}}',
    'context_length_exceeded',
    400,
  ],
  [422, '{"detail":"bad"}', 'invalid_request', 400],
  [401, '{"error":{"message":"key sk-secret is wrong"}}', 'upstream_refused', 502],
  [404, '{"error":{"message":"no such model"}}', 'upstream_refused', 502],
])('a permanent status %p is not retried', async (status, body, kind, httpStatus) => {
  const upstream = await upstreamThat({ status, headers: json, body })
  const error = await failure(start().run([target(upstream.baseUrl)]))
  expect([error.kind, error.status]).toEqual([kind as AppError['kind'], httpStatus])
  expect(error.message).not.toContain('sk-secret')
  expect(upstream.requests).toHaveLength(1)
})

test('HTML instead of a stream is an error that does not quote it', async () => {
  const upstream = await upstreamThat({
    headers: { 'content-type': 'text/html' },
    body: '<h1>It works</h1>',
  })
  const error = await failure(start().run([target(upstream.baseUrl)]))
  expect(error.kind).toBe('upstream_invalid_answer')
  expect(error.message).not.toContain('It works')
})

test('429 honours Retry-After up to a limit', async () => {
  const patient = await upstreamThat(
    { status: 429, headers: { 'retry-after': '0.02' } },
    { body: whole },
  )
  expect(texts(await collect(start().run([target(patient.baseUrl)])))).toBe('one two')
  const full = await upstreamThat({ status: 429, headers: { 'retry-after': '30' } })
  const error = await failure(start().run([target(full.baseUrl)]))
  expect([error.kind, error.retryAfterS]).toEqual(['rate_limit_exceeded', 30])
  expect(full.requests).toHaveLength(1)
})

test('a refused connection fails over to the next upstream', async () => {
  const dead = await upstreamThat({})
  await dead.stop()
  const alive = await upstreamThat({ body: whole })
  const { records, run } = start()
  const events = await collect(run([target(dead.baseUrl, 'dead'), target(alive.baseUrl, 'alive')]))
  expect(texts(events)).toBe('one two')
  expect(records).toMatchObject([{ target: { upstream: { name: 'alive' } }, retries: 1 }])
  expect((await failure(start().run([target(dead.baseUrl)]))).kind).toBe('upstream_unreachable')
})

test('an upstream without the model is skipped', async () => {
  const without = await upstreamThat({ status: 404 })
  const having = await upstreamThat({ body: whole })
  const events = await collect(
    start().run([target(without.baseUrl), target(having.baseUrl, 'having')]),
  )
  expect(texts(events)).toBe('one two')
})

test.each([
  [
    'cut in the middle of an event',
    { body: `${begun}data: {"choi`, ending: 'cut' as const },
    'upstream_truncated',
  ],
  ['ended without a finish reason', { body: begun }, 'upstream_truncated'],
  [
    'broken by an error object',
    { body: `${begun}data: {"error":{"message":"gone"}}\n\n` },
    'upstream_error',
  ],
])(
  'a stream that is %s ends with one error after its closed block',
  async (_name, answer, kind) => {
    const upstream = await upstreamThat(answer)
    const { records, run } = start()
    const events = await collect(run([target(upstream.baseUrl)]))
    expect(texts(events)).toBe('one ')
    expect(events.slice(-2)).toMatchObject([
      { type: 'text-end', complete: false },
      { type: 'error', error: { kind } },
    ])
    expect(upstream.requests).toHaveLength(1)
    expect(records).toMatchObject([{ outcome: 'failed' }])
  },
)

test('a second finish is ignored', async () => {
  const body = twice
  const events = await collect(start().run([target((await upstreamThat({ body })).baseUrl)]))
  expect(events.filter(({ type }) => type === 'finish')).toHaveLength(1)
  expect(texts(events)).toBe('one')
})
