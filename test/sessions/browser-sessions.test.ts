import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { asRecord } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { configFile, stopProcesses } from '#test/support/process.ts'

let plain: Gateway
let secure: Gateway
const publicUrl = 'https://gateway.example.org'

beforeAll(async () => {
  plain = await startGateway()
  secure = await startGateway({ environment: { SLUICE_PUBLIC_URL: publicUrl } })
})
afterAll(async () => {
  await plain.stop()
  await secure.stop()
  await stopProcesses()
})

async function logIn(
  gateway: Gateway,
  body: object,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${gateway.url}/v1/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-sluice-csrf': '1', ...headers },
    body: JSON.stringify(body),
  })
}

const cookieOf = (response: Response) => response.headers.getSetCookie()[0] ?? ''
const codeOf = async (response: Response) =>
  asRecord(asRecord(await response.json())['error'])['code']

describe('a cookie', () => {
  test('over https has the host prefix and is secure', async () => {
    const token = await secure.token(['users'], 'ann')
    const response = await logIn(secure, { token }, { origin: publicUrl })
    const cookie = cookieOf(response)
    expect(cookie).toMatch(
      /^__Host-sluice_session=[\w-]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict; Secure$/,
    )
    const me = (value: string) => fetch(`${secure.url}/v1/me`, { headers: { cookie: value } })
    expect((await me(cookie.split(';', 1)[0] ?? '')).status).toBe(200)
    // A neighbour host can set a cookie without the prefix.
    const [, secret = ''] = /=([\w-]{43});/.exec(cookie) ?? []
    expect((await me(`sluice_session=${secret}`)).status).toBe(401)
    expect((await me(`sluice_session_${secure.port}=${secret}`)).status).toBe(401)
  })

  test('of a public https address belongs to pages of that address', async () => {
    const token = await secure.token(['users'], 'ann')
    expect(await codeOf(await logIn(secure, { token }, { origin: secure.url }))).toBe(
      'csrf_refused',
    )
  })

  test('behind a trusted proxy is that of the address that the browser used', async () => {
    const config = configFile('trusted_proxies = ["127.0.0.1"]')
    const proxied = await startGateway({ environment: { SLUICE_CONFIG: config } })
    try {
      const token = await proxied.token(['users'], 'ann')
      const forwarded = {
        'x-forwarded-proto': 'https',
        'x-forwarded-host': 'gateway.example.org',
        'x-forwarded-for': '203.0.113.7',
      }
      const response = await logIn(proxied, { token }, { ...forwarded, origin: publicUrl })
      const cookie = cookieOf(response).split(';', 1)[0] ?? ''
      expect(cookie).toStartWith('__Host-')
      const headers = { ...forwarded, cookie }
      expect((await fetch(`${proxied.url}/v1/me`, { headers })).status).toBe(200)
      // Without a proxy in front, these headers are the client's own invention.
      const direct = await logIn(plain, { token: await plain.token() }, forwarded)
      expect(cookieOf(direct)).toStartWith('sluice_session_')
    } finally {
      await proxied.stop()
    }
  })

  test('needs https, except on this machine', async () => {
    const token = await plain.token(['users'], 'ann')
    for (const host of ['gateway.example.org', '192.168.1.7', '127.0.0.1.evil.example']) {
      expect(await codeOf(await logIn(plain, { token }, { host }))).toBe('https_required')
    }
    for (const host of [`localhost:${plain.port}`, '127.0.0.1:81', '[::1]:81']) {
      expect((await logIn(plain, { token }, { host })).status).toBe(201)
    }
  })
})

describe('a login with a token', () => {
  test('lives no longer than the token', async () => {
    const token = await plain.token(['users'], 'ann')
    const { session } = asRecord(await (await logIn(plain, { token })).json())
    const leftMs = Date.parse(String(asRecord(session)['expires_at'])) - Date.now()
    expect(leftMs).toBeGreaterThan(3_500_000)
    expect(leftMs).toBeLessThanOrEqual(3_600_000)
  })

  test.each([
    [{ token: 'no token' }, 401, 'invalid_token'],
    [{ token: 'sk-svc-v1-key' }, 401, 'invalid_token'],
    [{ code: 'A'.repeat(43) }, 401, 'invalid_login_code'],
    [{}, 422, 'unprocessable'],
    [{ token: 'a', code: 'b' }, 422, 'unprocessable'],
    [{ tokens: 'a' }, 422, 'unknown_field'],
    [[], 422, 'unprocessable'],
  ])('is refused for %j', async (body, status, code) => {
    const response = await logIn(plain, body)
    expect([response.status, await codeOf(response)]).toEqual([status, code])
    expect(response.headers.getSetCookie()).toEqual([])
  })

  test('is off where users log in at an identity provider and nobody signs tokens', async () => {
    const gateway = await startGateway({
      environment: {
        JWT_SECRET: '',
        JWT_JWKS_URL: 'http://127.0.0.1:1/jwks',
        JWT_ISSUER: 'http://127.0.0.1:1',
        JWT_AUDIENCE: 'sluice',
        SLUICE_LOGIN_CLIENT_ID: 'sluice',
      },
    })
    try {
      expect(await codeOf(await logIn(gateway, { token: 'x' }))).toBe('login_method_disabled')
      const { login } = asRecord(await (await fetch(`${gateway.url}/v1/session`)).json())
      expect(login).toEqual({ oidc: true, token: false, login_url: '/login' })
    } finally {
      await gateway.stop()
    }
  })

  test('is refused after too many failures of an address', async () => {
    const gateway = await startGateway()
    try {
      const statuses = []
      for (let attempt = 0; attempt < 32; attempt++) {
        statuses.push((await logIn(gateway, { code: 'wrong' })).status)
      }
      expect(statuses.indexOf(429)).toBe(30)
      const valid = { token: await gateway.token() }
      const refused = await logIn(gateway, valid)
      expect([refused.status, refused.headers.has('retry-after')]).toEqual([429, true])
    } finally {
      await gateway.stop()
    }
  })
})

test('the code of a printed link works once, and ends with the next start', async () => {
  const gateway = await startGateway()
  try {
    const { startCodes } = gateway.deps
    const first = await startCodes.create()
    const second = await startCodes.create()
    expect((await logIn(gateway, { code: first })).status).toBe(401)
    const used = await Promise.all([1, 2, 3].map(() => logIn(gateway, { code: second })))
    expect(used.map(({ status }) => status).sort()).toEqual([201, 401, 401])
    const accepted = used.find(({ ok }) => ok)
    const { session, user } = asRecord(await accepted?.json())
    expect(session).toMatchObject({ method: 'code' })
    expect(user).toMatchObject({
      subject: 'dev',
      permissions: expect.arrayContaining(['can_edit_config']),
    })
  } finally {
    await gateway.stop()
  }
})

test('nobody is logged in without a credential, or with an unknown cookie', async () => {
  for (const cookie of ['', `sluice_session_${plain.port}=${'A'.repeat(43)}`, 'x=y; =; ;']) {
    const response = await fetch(`${plain.url}/v1/session`, { headers: { cookie } })
    expect(await response.json()).toMatchObject({
      user: null,
      session: null,
      login: { oidc: false, token: true, login_url: null },
    })
    expect(response.headers.get('cache-control')).toBe('no-store')
  }
})

test('the login of the identity provider is off without one', async () => {
  for (const path of ['/login', '/login/callback?code=a&state=b']) {
    const response = await fetch(plain.url + path, { redirect: 'manual' })
    expect([response.status, await codeOf(response)]).toEqual([404, 'login_not_configured'])
  }
})

test('a user has at most 100 sessions; the oldest ones end', async () => {
  const token = await plain.token(['users'], 'prolific')
  const cookies: string[] = []
  for (let count = 0; count < 102; count++) {
    cookies.push(cookieOf(await logIn(plain, { token })).split(';', 1)[0] ?? '')
  }
  const statusOf = async (cookie = '') =>
    (await fetch(`${plain.url}/v1/me`, { headers: { cookie } })).status
  expect(await Promise.all([0, 1, 2, 101].map((at) => statusOf(cookies[at])))).toEqual([
    401, 401, 200, 200,
  ])
})
