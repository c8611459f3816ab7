import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { readFailure } from '#test/support/refusals.ts'

/** The credentials of a request by header, and the errors without them. */

let gateway: Gateway
/** Behaves like the platform version that did not accept API keys in Authorization. */
let older: Gateway
let token: string
let key: string
let olderKey: string

beforeAll(async () => {
  gateway = await startGateway()
  older = await startGateway({ environment: { PLATFORM_VERSION: '1.2.0' } })
  token = await gateway.token()
  key = await createKey(gateway)
  olderKey = await createKey(older)
})
afterAll(async () => {
  await gateway.stop()
  await older.stop()
})

async function createKey(of: Gateway): Promise<string> {
  const created: unknown = await (await of.post('/v1/api-keys', { name: 'a key' })).json()
  return String(Object(created).key)
}

/** Sends a request with these headers only. */
const ask = (of: Gateway, headers: Record<string, string>, body: string = question) =>
  fetch(`${of.url}/v1/responses`, { method: 'POST', headers, body })
const question = JSON.stringify({ model: 'demo-fast', input: 'x' })
const streamed = JSON.stringify({ model: 'demo-fast', input: 'x', stream: true })
const bearer = (value: string) => ({ authorization: `Bearer ${value}` })
const changed = (text: string) => text.slice(0, -1) + (text.endsWith('0') ? '1' : '0')

describe('accepted', () => {
  test.each([
    ['a token', () => bearer(token)],
    ['an API key in Authorization', () => bearer(key)],
    ['an API key in X-Api-Key', () => ({ 'x-api-key': key })],
    ['an API key with an invalid token', () => ({ 'x-api-key': key, ...bearer('nonsense') })],
    ['a token with an empty API key', () => ({ 'x-api-key': '', ...bearer(token) })],
    ['an API key in Authorization with an empty one', () => ({ 'x-api-key': ' ', ...bearer(key) })],
    ['an API key with an empty bearer', () => ({ 'x-api-key': key, ...bearer('') })],
    ['an API key with another scheme', () => ({ 'x-api-key': key, authorization: 'Basic eDp5' })],
  ])('%s', async (_what, headers) => {
    const answer = await ask(gateway, headers())
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({ status: 'completed' })
  })
})

describe.each([
  ['', () => question],
  [', also for a stream', () => streamed],
  [', whatever else is wrong', () => '{"model":'],
])('refused%s', (_way, body) => {
  test.each([
    ['nothing', () => ({}), 'missing_credentials'],
    ['another scheme', () => ({ authorization: 'Basic eDp5' }), 'missing_credentials'],
    ['an empty bearer', () => ({ authorization: 'Bearer ' }), 'missing_credentials'],
    ['a malformed token', () => bearer('nonsense'), 'invalid_token'],
    ['a token with a changed character', () => bearer(changedSignature(token)), 'invalid_token'],
    ['an empty API key', () => ({ 'x-api-key': '' }), 'missing_credentials'],
    [
      'an empty API key with an invalid token',
      () => ({ 'x-api-key': '', ...bearer('nonsense') }),
      'invalid_token',
    ],
    ['an API key with a changed character', () => bearer(changed(key)), 'invalid_api_key'],
    ['a token in X-Api-Key', () => ({ 'x-api-key': token }), 'invalid_api_key'],
    [
      'an invalid API key with a valid token',
      () => ({ 'x-api-key': changed(key), ...bearer(token) }),
      'invalid_api_key',
    ],
    [
      'an invalid API key with a valid one',
      () => ({ 'x-api-key': changed(key), ...bearer(key) }),
      'invalid_api_key',
    ],
  ])('%s', async (_what, headers, code) => {
    const failure = await readFailure(await ask(gateway, headers(), body()), gateway)
    expect([failure.status, failure.type, failure.code]).toEqual([
      401,
      'authentication_error',
      code,
    ])
    expect(failure.headers.get('www-authenticate')).toStartWith('Bearer')
    expect(failure.seen).not.toContain(changed(key).slice(12))
  })

  test('a user whose groups lack can_access_api', async () => {
    const withoutPermission = bearer(await gateway.token(['strangers'], 'stranger'))
    const failure = await readFailure(await ask(gateway, withoutPermission, body()), gateway)
    expect([failure.status, failure.type, failure.code]).toEqual([
      403,
      'permission_error',
      'permission_denied',
    ])
  })
})

function changedSignature(jwt: string): string {
  const at = jwt.lastIndexOf('.') + 5
  return jwt.slice(0, at) + (jwt[at] === 'A' ? 'B' : 'A') + jwt.slice(at + 1)
}

describe('before 1.2.1', () => {
  test('there is no Messages surface, and the API document has none', async () => {
    for (const [method, path] of [
      ['POST', '/compat/v1/messages'],
      ['GET', '/compat/v1/models'],
      ['GET', '/compat'],
    ] as const) {
      const answer = await fetch(older.url + path, { method, headers: { 'x-api-key': olderKey } })
      expect([path, answer.status]).toEqual([path, 404])
      const present = await fetch(gateway.url + path, { method, headers: { 'x-api-key': key } })
      expect([path, present.status]).not.toEqual([path, 404])
    }
    const paths = Object.keys(Object(await (await fetch(`${older.url}/openapi.json`)).json()).paths)
    expect(paths).toContain('/v1/responses')
    expect(paths.filter((path) => path.startsWith('/compat'))).toEqual([])
  })

  test('an API key in Authorization is treated as a token', async () => {
    const failure = await readFailure(await ask(older, bearer(olderKey)), older)
    expect([failure.status, failure.message]).toEqual([
      401,
      'Jwt is not in the form of Header.Payload.Signature',
    ])
  })

  test('an API key in X-Api-Key is accepted, also with one in Authorization', async () => {
    for (const headers of [{}, bearer(olderKey)]) {
      const answer = await ask(older, { 'x-api-key': olderKey, ...headers })
      expect(answer.status).toBe(200)
      await answer.text()
    }
  })
})

test('a revoked API key is refused', async () => {
  const created: unknown = await (await gateway.post('/v1/api-keys', { name: 'short' })).json()
  const { id, key: brief } = Object(created)
  expect((await ask(gateway, bearer(brief))).status).toBe(200)
  await gateway.request(`/v1/api-keys/${id}`, { method: 'DELETE' })
  const failure = await readFailure(await ask(gateway, bearer(brief)), gateway)
  expect([failure.status, failure.code]).toEqual([401, 'invalid_api_key'])
})
