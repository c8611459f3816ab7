import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  configFile,
  type GatewayProcess,
  signToken,
  startGatewayProcess,
  stopProcesses,
} from '#test/support/process.ts'
import { openSocket } from '#test/support/socket-client.ts'

/** Requests of pages of other origins, and the headers of every response. */

let gateway: GatewayProcess
let closed: GatewayProcess

beforeAll(async () => {
  const config = configFile(`
trusted_proxies = ["127.0.0.1"]
[cors]
origins = ["https://chat.example.com", "https://*.corp.example", "http://localhost:5173"]
credentials = true
max_age_s = 77
`)
  gateway = await startGatewayProcess({ environment: { SLUICE_CONFIG: config } })
  closed = await startGatewayProcess()
})
afterAll(stopProcesses)

const page = 'https://chat.example.com'
const stream = {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ model: 'demo', input: 'Hi', store: false, stream: true }),
}

function preflight(to: GatewayProcess, path: string, origin: string, headers = 'authorization') {
  return fetch(to.url() + path, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': headers,
    },
  })
}

const list = (response: Response, name: string) => (response.headers.get(name) ?? '').split(', ')

describe('a preflight request', () => {
  test('is answered without a credential, from the declaration of the endpoint', async () => {
    const asked =
      'authorization,content-type,x-api-key,anthropic-version,x-stainless-os,if-match,x-evil'
    const response = await preflight(gateway, '/v1/responses', page, asked)
    expect([response.status, await response.text()]).toEqual([204, ''])
    expect(response.headers.get('access-control-allow-origin')).toBe(page)
    expect(response.headers.get('access-control-allow-credentials')).toBe('true')
    expect(response.headers.get('access-control-max-age')).toBe('77')
    expect(list(response, 'access-control-allow-methods')).toEqual(['GET', 'HEAD', 'POST'])
    expect(list(response, 'access-control-allow-headers')).toEqual(asked.split(',').slice(0, -1))
    expect(list(response, 'vary')).toContain('Origin')
    const one = await preflight(gateway, '/v1/agents/x', page)
    expect(list(one, 'access-control-allow-methods')).toContain('DELETE')
    expect(list(one, 'access-control-allow-methods')).not.toContain('POST')
  })

  test('is refused for another origin, and for a path that does not exist', async () => {
    const other = await preflight(gateway, '/v1/responses', 'https://evil.example')
    expect(other.status).toBe(403)
    expect(await other.json()).toMatchObject({ error: { code: 'origin_not_allowed' } })
    expect(other.headers.get('access-control-allow-origin')).toBeNull()
    expect((await preflight(gateway, '/v1/nothing', page)).status).toBe(404)
  })
})

test.each([
  ['https://chat.example.com', true],
  ['http://localhost:5173', true],
  ['https://a.corp.example', true],
  ['https://a.b-2.corp.example', true],
  ['https://corp.example', false],
  ['http://a.corp.example', false],
  ['https://a.corp.example:8443', false],
  ['https://a.corp.example.evil', false],
  ['https://evilcorp.example', false],
  ['https://evil.example/a.corp.example', false],
  ['https://chatXexample.com', false],
  ['http://localhost:5174', false],
  ['null', false],
])('the origin %s is allowed: %p', async (origin, isAllowed) => {
  const response = await gateway.request('/v1/models', { headers: { origin } })
  expect(response.status).toBe(200)
  expect(response.headers.get('access-control-allow-origin')).toBe(isAllowed ? origin : null)
  expect(response.headers.get('vary')).toBe('Origin')
})

test('errors, streams and files carry the headers; each surface exposes its rate limits', async () => {
  const headers = { origin: page }
  const ask = (path: string, init: RequestInit = {}) =>
    gateway.request(path, { ...init, headers: { ...headers, ...init.headers } })
  const responses = [
    await fetch(`${gateway.url()}/v1/models`, { headers }),
    await ask('/v1/nothing'),
    await ask('/v1/models', { method: 'PUT' }),
    await ask('/v1/responses', { ...stream, body: '{' }),
    await ask('/v1/responses', stream),
    await ask('/compat/v1/messages', { ...stream, body: '{}' }),
    await ask('/docs'),
  ]
  expect(responses.map(({ status }) => status)).toEqual([401, 404, 405, 400, 200, 400, 200])
  for (const response of responses) {
    expect(response.headers.get('access-control-allow-origin')).toBe(page)
    expect(list(response, 'access-control-expose-headers')).toContain('x-request-id')
    await response.arrayBuffer()
  }
  const exposed = responses.map((response) => list(response, 'access-control-expose-headers'))
  expect(exposed[4]).toContain('x-ratelimit-remaining-tokens')
  expect(exposed[5]).toContain('anthropic-ratelimit-input-tokens-remaining')
  expect(exposed[5]).toContain('request-id')
})

test('WebSockets of pages of other origins are refused; own pages and programs connect', async () => {
  const authorization = `Bearer ${await signToken()}`
  const statusOf = async (headers: Record<string, string>, path = '/v1/responses') => {
    const { head, socket } = await openSocket(gateway.port(), {
      path,
      headers: { authorization, ...headers },
    })
    socket.destroy()
    return Number(head.split(' ')[1])
  }
  expect(await statusOf({ origin: page })).toBe(101)
  expect(await statusOf({})).toBe(101)
  // The client of these tests sends `Host: gateway`.
  expect(await statusOf({ origin: 'http://gateway' })).toBe(101)
  expect(await statusOf({ origin: 'https://llm.example', 'x-forwarded-host': 'llm.example' })).toBe(
    101,
  )
  expect(await statusOf({ origin: 'https://evil.example' })).toBe(403)
  expect(await statusOf({ origin: 'null' })).toBe(403)
  const speech = '/v1/stt?encoding=pcm_int16&sample_rate_hz=16000'
  expect(await statusOf({ origin: 'https://evil.example' }, speech)).toBe(403)
  expect(await statusOf({ origin: page }, speech)).toBe(101)
})

test('without origins nothing is allowed, and nothing else changes', async () => {
  const response = await closed.request('/v1/models', { headers: { origin: page } })
  expect(response.status).toBe(200)
  const names = [...response.headers.keys()]
  expect(names.filter((name) => /^access-control|^vary/.test(name))).toEqual([])
  expect((await preflight(closed, '/v1/responses', page)).status).toBe(405)
  const headers = { authorization: `Bearer ${await signToken()}`, origin: 'https://evil.example' }
  expect((await openSocket(closed.port(), { headers })).head).toStartWith('HTTP/1.1 101')
})

test('every kind of response has the security headers and the id of its request', async () => {
  const responses = [
    await closed.request('/v1/models'),
    await closed.request('/v1/responses', stream),
    await closed.request('/v1/nothing'),
    await closed.request('/v1/models', { method: 'PUT' }),
    await closed.request('/compat/v1/messages', { ...stream, body: '{}' }),
    await fetch(`${closed.url()}/v1/models`),
    await fetch(`${closed.url()}/livez`),
    await fetch(`${closed.url()}/livez`, { method: 'HEAD' }),
    await fetch(`${closed.url()}/docs`),
    await fetch(`${closed.url()}/metrics`),
    await preflight(gateway, '/v1/responses', page),
  ]
  for (const { headers } of responses) {
    expect(headers.get('x-request-id')).toMatch(/^req_\w{26}$/)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('cross-origin-resource-policy')).toBe('same-origin')
    expect(headers.get('strict-transport-security')).toBeNull()
    if (headers.get('content-type')?.startsWith('text/html')) {
      expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    }
  }
  for (const response of responses) await response.arrayBuffer()
  const { headers } = await closed.request('/compat/v1/models')
  expect(headers.get('request-id')).toBe(headers.get('x-request-id'))
})
