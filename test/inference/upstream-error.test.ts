import { afterEach, expect, test } from 'bun:test'
import { errorFromPayload, errorFromStatus } from '#inference/upstream-error.ts'
import {
  begun,
  collect,
  failure,
  json,
  start,
  stopUpstreams,
  target,
  upstreamThat,
  whole,
} from '#test/support/generations.ts'

afterEach(stopUpstreams)

const secrets = { key: 'upstream-key-1', headers: { 'x-team': 'team-secret-2' } }

function targetWithSecrets(baseUrl: string) {
  const plain = target(baseUrl)
  return { ...plain, upstream: { ...plain.upstream, ...secrets } }
}

test.each([400, 422, 429, 500, 503])(
  'an upstream that quotes its credential and address in a %p is passed on without them',
  async (status) => {
    const upstream = await upstreamThat({})
    const said = `key ${secrets.key} of ${secrets.headers['x-team']} at ${upstream.baseUrl}/chat: bad`
    upstream.answer({ status, headers: json, body: JSON.stringify({ error: { message: said } }) })
    const { records, run } = start({ retry: { retriesMax: 0 } })
    const error = await failure(run([targetWithSecrets(upstream.baseUrl)]))
    expect(error.message).toBe('key [hidden] of [hidden] at [hidden]/chat: bad')
    const record = JSON.stringify({ cause: records[0]?.error?.cause })
    for (const secret of [secrets.key, secrets.headers['x-team'], upstream.baseUrl]) {
      expect(record).not.toContain(secret)
    }
  },
)

test('also in the middle of a stream', async () => {
  const upstream = await upstreamThat({})
  const said = { error: { message: `lost ${secrets.key} at ${new URL(upstream.baseUrl).host}` } }
  upstream.answer({ body: `${begun}data: ${JSON.stringify(said)}\n\n` })
  const events = await collect(start().run([targetWithSecrets(upstream.baseUrl)]))
  expect(events.at(-1)).toMatchObject({ error: { message: 'lost [hidden] at [hidden]' } })
})

test('an exhausted quota is reported and not retried', async () => {
  const body =
    '{"error":{"message":"pay first","type":"insufficient_quota","code":"insufficient_quota"}}'
  const broke = await upstreamThat({ status: 429, headers: json, body })
  const error = await failure(start().run([target(broke.baseUrl)]))
  expect([error.status, error.wireCode, error.message]).toEqual([
    429,
    'insufficient_quota',
    'pay first',
  ])
  expect(broke.requests).toHaveLength(1)
  const rich = await upstreamThat({ body: whole })
  const events = await collect(start().run([target(broke.baseUrl), target(rich.baseUrl, 'rich')]))
  expect(events.at(-1)?.type).toBe('finish')
})

test.each([
  ['{"error":{"message":"a"}}', 'a'],
  ['{"error":"b"}', 'b'],
  ['{"message":"c"}', 'c'],
  ['{"detail":"d"}', 'd'],
  [
    '{"detail":[{"loc":["body","top_p"],"msg":"too large"},{"msg":"e"}]}',
    'body.top_p: too large; e',
  ],
  ['<html>', 'The upstream refused the request.'],
  ['', 'The upstream refused the request.'],
])('the message of %p is found', (body, words) => {
  expect(errorFromStatus(400, body).message).toBe(words)
})

test('long messages are truncated', () => {
  expect(errorFromStatus(500, JSON.stringify({ error: 'x'.repeat(10_000) })).message.length).toBe(
    500,
  )
})

test('other payloads are not errors', () => {
  for (const payload of [null, 'x', {}, { choices: [] }, { error: null }]) {
    expect(errorFromPayload(payload)).toBeNull()
  }
})

test.each<[number, string]>([
  [400, 'invalid_request'],
  [401, 'upstream_refused'],
  [402, 'insufficient_quota'],
  [403, 'upstream_refused'],
  [404, 'upstream_refused'],
  [405, 'upstream_refused'],
  [408, 'upstream_error'],
  [409, 'upstream_error'],
  [410, 'upstream_refused'],
  [413, 'request_too_large'],
  [422, 'invalid_request'],
  [429, 'rate_limit_exceeded'],
  [499, 'upstream_refused'],
  [500, 'upstream_error'],
  [502, 'upstream_error'],
  [503, 'upstream_overloaded'],
  [504, 'upstream_error'],
  [529, 'upstream_overloaded'],
])('the status %p is %s', (status, kind) => {
  expect(errorFromStatus(status, '').kind).toBe(kind as ReturnType<typeof errorFromStatus>['kind'])
})
