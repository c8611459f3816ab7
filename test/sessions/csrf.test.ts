import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Endpoint } from '#api/endpoint.ts'
import { listEndpoints } from '#app.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { readFailure } from '#test/support/refusals.ts'

let gateway: Gateway
let cookie: string

beforeAll(async () => {
  gateway = await startGateway()
  cookie = await logIn()
})
afterAll(() => gateway.stop())

/** A session of an administrator, who may do everything. */
async function logIn(): Promise<string> {
  const response = await fetch(`${gateway.url}/v1/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-sluice-csrf': '1' },
    body: JSON.stringify({ token: await gateway.token(['admins'], 'root') }),
  })
  expect(response.status).toBe(201)
  return response.headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
}

function send({ method, path }: Pick<Endpoint, 'method' | 'path'>, headers: object) {
  const place = path.replace(/:\w+\??/g, '0198a000-0000-7000-8000-000000000000').replace('*', 'x')
  return fetch(gateway.url + place, { method, headers: { cookie, ...headers }, redirect: 'manual' })
}

const isSafe = ({ method }: Endpoint) => method === 'GET' || method === 'HEAD'
const needsCredential = ({ permission }: Endpoint) => permission !== 'public'

/** The endpoints that do not refuse such a request as forged. */
async function acceptingOf(
  endpoints: readonly Endpoint[],
  headers: Record<string, string>,
): Promise<string[]> {
  const accepting: string[] = []
  for (const endpoint of endpoints) {
    const response = await send(endpoint, headers)
    const isHead = endpoint.method === 'HEAD'
    const refusal =
      response.status === 403 && !isHead ? await readFailure(response, gateway) : undefined
    const isRefused = isHead ? response.status === 403 : refusal?.code === 'csrf_refused'
    if (refusal === undefined) await response.body?.cancel()
    if (!isRefused) accepting.push(`${endpoint.method} ${endpoint.path}: ${response.status}`)
  }
  return accepting
}

describe('a request with a session cookie', () => {
  const own = () => ({ origin: gateway.url, 'sec-fetch-site': 'same-origin', 'x-sluice-csrf': '1' })
  const changing = () =>
    listEndpoints(gateway.deps).filter((one) => needsCredential(one) && !isSafe(one))
  const reading = () =>
    listEndpoints(gateway.deps).filter((one) => needsCredential(one) && isSafe(one))

  test('that changes something needs the header, on every endpoint', async () => {
    expect(changing().length).toBeGreaterThan(60)
    const { 'x-sluice-csrf': _, ...without } = own()
    expect(await acceptingOf(changing(), without)).toEqual([])
  })

  test('that changes something is refused from another origin, on every endpoint', async () => {
    const foreign = { ...own(), origin: 'https://evil.example' }
    expect(await acceptingOf(changing(), foreign)).toEqual([])
    expect(await acceptingOf(changing(), { ...own(), origin: 'null' })).toEqual([])
  })

  test('that changes something is refused from another site, on every endpoint', async () => {
    for (const site of ['cross-site', 'same-site', 'none']) {
      const { origin: _, ...headers } = { ...own(), 'sec-fetch-site': site }
      expect(await acceptingOf(changing(), headers)).toEqual([])
    }
  })

  test('that reads is refused from another origin, on every endpoint', async () => {
    // Handlers that upgrade, and refuse in their own way, have tests of their own below.
    const upgrading = ['/v1/stt', '/v1/responses']
    const endpoints = reading().filter(({ path }) => !upgrading.includes(path))
    expect(await acceptingOf(endpoints, { origin: 'https://evil.example' })).toEqual([])
  })

  test('of the page itself passes', async () => {
    const { status } = await send({ method: 'DELETE', path: '/v1/api-keys/:id' }, own())
    expect(status).toBe(404)
    expect((await send({ method: 'GET', path: '/v1/me' }, {})).status).toBe(200)
  })

  test('needs neither with a token or a key beside the cookie', async () => {
    const authorization = `Bearer ${await gateway.token(['admins'], 'root')}`
    const headers = { authorization, origin: 'https://other.example' }
    const { status } = await send({ method: 'DELETE', path: '/v1/api-keys/:id' }, headers)
    expect(status).toBe(404)
  })
})

describe('logging in and out', () => {
  const body = async () => JSON.stringify({ token: await gateway.token(['users'], 'ann') })
  const type = { 'content-type': 'application/json' }

  test.each([
    ['without the header', {}],
    ['from another origin', { origin: 'https://evil.example', 'x-sluice-csrf': '1' }],
    ['from another site', { 'sec-fetch-site': 'cross-site', 'x-sluice-csrf': '1' }],
  ])('is refused %s', async (_, headers) => {
    for (const method of ['POST', 'DELETE']) {
      const response = await fetch(`${gateway.url}/v1/session`, {
        method,
        headers: { ...type, ...headers, ...(method === 'DELETE' ? { cookie } : {}) },
        ...(method === 'POST' ? { body: await body() } : {}),
      })
      expect([response.status, await response.json()]).toMatchObject([
        403,
        { error: { code: 'csrf_refused' } },
      ])
      expect(response.headers.getSetCookie()).toEqual([])
    }
  })
})

describe('a WebSocket with a session cookie', () => {
  const upgrade = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  }

  test.each([[{}], [{ origin: 'https://evil.example' }], [{ origin: 'null' }]])(
    'of responses is refused with %j',
    async (headers) => {
      const response = await fetch(`${gateway.url}/v1/responses`, {
        headers: { ...upgrade, cookie, ...headers },
      })
      expect(response.status).toBe(403)
      expect(await response.text()).toContain('csrf_refused')
    },
  )

  /** The first frame of a socket. */
  function firstFrame(headers: Record<string, string>): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>()
    const address = `${gateway.url.replace('http', 'ws')}/v1/stt?encoding=wav`
    const socket = new WebSocket(address, { headers: { cookie, ...headers } } as never)
    socket.addEventListener('message', ({ data }) => {
      resolve(String(data))
      socket.close()
    })
    return promise
  }

  test('of speech is refused from another origin, and accepted from the page', async () => {
    expect(await firstFrame({ origin: 'https://evil.example' })).toContain('from the pages of')
    expect(await firstFrame({ origin: gateway.url })).not.toMatch(/from the pages of|credential/)
  })
})

test('the base permission is needed with a cookie as with a token', async () => {
  const response = await fetch(`${gateway.url}/v1/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-sluice-csrf': '1' },
    body: JSON.stringify({ token: await gateway.token(['nobodies'], 'zoe') }),
  })
  const zoe = response.headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
  expect((await fetch(`${gateway.url}/v1/me`, { headers: { cookie: zoe } })).status).toBe(403)
  const session = await fetch(`${gateway.url}/v1/session`, { headers: { cookie: zoe } })
  expect(await session.json()).toMatchObject({ user: { subject: 'zoe', permissions: [] } })
})
