import { afterEach, expect, test } from 'bun:test'
import {
  errorFromPayload,
  errorFromStatus,
  hideUpstream,
  hideUpstreamIn,
} from '#inference/upstream-error.ts'
import { AppError } from '#lib/errors.ts'
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

/** The parts of an error that a client sees. */
const shown = (error: AppError | null) =>
  error === null
    ? null
    : { kind: error.kind, message: error.message, code: error.wireCode, param: error.param }

test.each<[object, Partial<NonNullable<ReturnType<typeof shown>>> | null]>([
  [{ error: 'down' }, { kind: 'upstream_error', message: 'down' }],
  [{ error: {} }, { kind: 'upstream_error', message: 'The upstream reported an error.' }],
  [
    { object: 'error', message: 'down' },
    { kind: 'upstream_error', message: 'down' },
  ],
  [{ type: 'error' }, { kind: 'upstream_error' }],
  [{ type: 'error', error: { type: 'overloaded_error' } }, { kind: 'upstream_overloaded' }],
  [{ error: { type: 'rate_limit_error' } }, { kind: 'rate_limit_exceeded' }],
  [{ error: { code: 'rate_limit_exceeded' } }, { kind: 'rate_limit_exceeded' }],
  [{ error: { type: 'authentication_error' } }, { kind: 'upstream_refused' }],
  [{ error: { type: 'permission_error' } }, { kind: 'upstream_refused' }],
  [{ error: { type: 'not_found_error' } }, { kind: 'upstream_refused' }],
  [{ error: { type: 'insufficient_quota' } }, { kind: 'insufficient_quota' }],
  [{ error: { code: 'insufficient_quota' } }, { kind: 'insufficient_quota' }],
  [{ error: { type: 'billing_error' } }, { kind: 'insufficient_quota' }],
  [{ error: { code: 'x_1' } }, { kind: 'upstream_error', code: 'x_1' }],
  [
    { error: { type: 'invalid_request_error', param: 'top_p', code: 'x_1', message: 'No.' } },
    { kind: 'invalid_request', message: 'No.', code: 'x_1', param: 'top_p' },
  ],
  [
    { error: { type: 'invalid_request_error' } },
    { kind: 'invalid_request', message: 'The upstream refused the request.', param: null },
  ],
  [{ error: { type: 'request_too_large' } }, { kind: 'request_too_large' }],
  [{ error: { code: 'context_length_exceeded' } }, { kind: 'context_length_exceeded' }],
  [
    { error: { type: 'invalid_request_error', message: 'prompt is too long', code: 'x_1' } },
    { kind: 'context_length_exceeded', code: 'context_length_exceeded' },
  ],
  [
    { error: { type: 'x', details: { error_code: 'context_length_exceeded' } } },
    { kind: 'context_length_exceeded' },
  ],
  [{ error: { code: 400, message: 'No.' } }, { kind: 'invalid_request', message: 'No.' }],
  [{ error: { status: 503 } }, { kind: 'upstream_overloaded' }],
  [{ error: { code: 399 } }, { kind: 'upstream_error' }],
])('the payload %j is an error', (payload, expected) => {
  expect(shown(errorFromPayload(payload))).toMatchObject(expected ?? {})
})

test('an exhausted quota in a 429 is distinguished from a rate limit', () => {
  const kindOf = (error: object) => errorFromStatus(429, JSON.stringify({ error })).kind
  expect(kindOf({ code: 'insufficient_quota' })).toBe('insufficient_quota')
  expect(kindOf({ type: 'billing_error' })).toBe('insufficient_quota')
  expect(kindOf({ type: 'rate_limit_error' })).toBe('rate_limit_exceeded')
})

test.each([
  ['7', 7],
  ['0', 0],
  ['1.5', 1.5],
  ['-1', undefined],
  ['Sat, 28 Nov 2026 22:00:00 GMT', undefined],
  [null, undefined],
])('the pause %p of an upstream is %p seconds', (retryAfter, seconds) => {
  expect(errorFromStatus(503, '', { retryAfter }).retryAfterS).toBe(seconds)
})

test('a refused credential says nothing of what the upstream said, but in its cause', () => {
  const error = errorFromStatus(401, `{"message":"bad key"}${' '.repeat(1_000)}`)
  expect(error.message).toBe('The upstream refused the credential of the gateway.')
  expect(error.cause).toEqual({ status: 401, body: `{"message":"bad key"}${' '.repeat(479)}` })
})

test('secrets are hidden in every part of an error, and short values are not secrets', () => {
  const { upstream } = target('http://models.test/v1')
  const secret = { ...upstream, key: 'secret', headers: { a: 'short' } }
  const text = 'secret short models.test http://models.test/v1'
  const hidden = '[hidden] short [hidden] [hidden]'
  expect(hideUpstream(text, secret)).toBe(hidden)
  const relay = { status: 400, body: text, contentType: 'application/json' }
  const details = { code: 'x_1', param: 'top_p', retryAfterS: 7, relay, cause: 'why' }
  expect(hideUpstreamIn(new AppError('invalid_request', text, details), secret)).toMatchObject({
    kind: 'invalid_request',
    message: hidden,
    wireCode: 'x_1',
    param: 'top_p',
    retryAfterS: 7,
    relay: { ...relay, body: hidden },
    cause: 'why',
  })
  const inBody = new AppError('invalid_request', 'No.', { relay })
  expect(hideUpstreamIn(inBody, secret)).toMatchObject({ relay: { body: hidden }, param: null })
  const harmless = new AppError('invalid_request', 'No.')
  expect(hideUpstreamIn(harmless, secret)).toBe(harmless)
  const other = new Error('secret')
  expect(hideUpstreamIn(other, secret)).toBe(other)
})
