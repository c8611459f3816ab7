import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { asRecord } from '#lib/json.ts'
import { readReturnTo } from '#sessions/login-state.ts'
import { createWebBrowser, type WebBrowser } from '#test/support/oidc/web-browser.ts'
import { finish, type LoginWorld, sessionOf, startLoginWorld, untilCallback } from './world.ts'

let world: LoginWorld
let url: string

beforeAll(async () => {
  world = await startLoginWorld()
  url = world.gateway.url
})
afterAll(() => world.stop())
beforeEach(() => {
  world.provider.user = { subject: 'ann', groups: ['users'], name: 'Ann Example' }
})

async function userOf(browser: WebBrowser): Promise<string | null> {
  const { user } = await sessionOf(browser, url)
  return user === null ? null : String(user['subject'])
}

test('a login at the provider gives the principal of its token', async () => {
  const browser = await world.logIn()
  const { user, session } = await sessionOf(browser, url)
  expect(user).toMatchObject({ subject: 'ann', permissions: ['can_access_api'], auth: 'jwt' })
  expect(session).toMatchObject({ method: 'oidc' })
  const bearer = { authorization: `Bearer ${await world.gateway.token(['users'], 'ann')}` }
  const byToken = await (await world.gateway.request('/v1/me', { headers: bearer })).json()
  const bySession = await (await browser.call(`${url}/v1/me`)).json()
  expect(bySession).toEqual({ ...Object(byToken), name: 'Ann Example' })
})

test('a session creates responses and API keys', async () => {
  const browser = await world.logIn()
  const send = (path: string, body: object) =>
    browser.call(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  expect((await send('/v1/responses', { model: 'demo', input: 'Hi.' })).status).toBe(200)
  const made = await send('/v1/api-keys', { name: 'from the console' })
  expect(made.status).toBe(200)
  const key = String(asRecord(await made.json())['key'])
  const me = await fetch(`${url}/v1/me`, { headers: { 'x-api-key': key } })
  expect(await me.json()).toMatchObject({ subject: 'ann', auth: 'api_key' })
})

test('the login page is the requested one, and only a page of the console', async () => {
  const leads = async (returnTo: string) => {
    const address = `${url}/login?return_to=${encodeURIComponent(returnTo)}`
    const isConsole = ({ pathname }: URL) => pathname.startsWith('/console')
    const { visited } = await createWebBrowser().open(address, { until: isConsole })
    return String(visited.at(-1)).replace(url, '')
  }
  expect(await leads('/console/models?q=a')).toBe('/console/models?q=a')
  expect(await leads('https://evil.example/console/')).toBe('/console/')
})

test.each([
  ['https://evil.example/'],
  ['//evil.example/console/'],
  ['/\\evil.example/console/'],
  ['/console/\\..\\..\\evil'],
  ['/console/../v1/me'],
  ['/console/%2e%2e/logout'],
  ['/consolexyz'],
  ['/console\t/'],
  ['/console@evil.example/'],
  ['javascript:alert(1)'],
  ['/logout'],
  [''],
])('return_to %j leads to the start page', (text) => {
  expect(readReturnTo(text)).toBe('/console/')
})

test('the cookie is for this gateway alone, and no script reads it', async () => {
  const browser = await world.logIn()
  const cookie = browser.cookie('sluice_session')
  expect(cookie?.name).toBe(`sluice_session_${world.gateway.port}`)
  expect(cookie?.attributes).toMatch(/^Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict$/)
  // 256 random bits.
  expect(cookie?.value).toMatch(/^[\w-]{43}$/)
  expect(browser.cookie('sluice_login')).toBeUndefined()
})

test('the database has no secret of a session in plain text', async () => {
  const browser = await world.logIn()
  const { database } = world.gateway.deps
  const rows = await database.drizzle.execute<{ row: string; id_token: string }>(
    'select row_to_json(s)::text as row, id_token from login_session s',
  )
  const text = JSON.stringify(rows)
  expect(text).not.toContain(browser.cookie('sluice_session')?.value ?? '')
  expect(text).toContain('sluice1.')
  for (const { id_token } of rows) expect(id_token).toStartWith('sluice1.')
  // A token of the provider: a header and claims. Ciphertext may have the first letters by chance.
  expect(text).not.toMatch(/eyJ[\w-]+\.eyJ/)
})

test('a session that was planted before the login gives no access after it', async () => {
  const attacker = await world.logIn()
  const planted = attacker.cookie('sluice_session')
  world.provider.user = { subject: 'bob', groups: ['users'], name: 'Bob' }
  const victim = createWebBrowser()
  victim.setCookie('127.0.0.1', planted?.name ?? '', planted?.value ?? '')
  await world.logIn(victim)
  expect(await userOf(victim)).toBe('bob')
  expect(victim.cookie('sluice_session')?.value).not.toBe(planted?.value)
  expect(await userOf(attacker)).not.toBe('bob')
})

test('a second login ends the first session of the browser', async () => {
  const browser = await world.logIn()
  const first = browser.cookie('sluice_session')
  await world.logIn(browser)
  const stale = createWebBrowser()
  stale.setCookie('127.0.0.1', first?.name ?? '', first?.value ?? '')
  expect(await userOf(stale)).toBeNull()
  expect(await userOf(browser)).toBe('ann')
})

test('a disabled user cannot log in', async () => {
  world.provider.user = { subject: 'cleo', groups: ['users'], name: 'Cleo' }
  const before = await world.logIn()
  const { user } = await sessionOf(before, url)
  const admin = { authorization: `Bearer ${await world.gateway.token(['admins'], 'root')}` }
  await fetch(`${url}/v1/users/${user?.['id']}`, {
    method: 'PATCH',
    headers: { ...admin, 'content-type': 'application/json' },
    body: JSON.stringify({ disabled: true }),
  })
  expect(await userOf(before)).toBeNull()
  expect((await before.call(`${url}/v1/me`)).status).toBe(401)
  const again = createWebBrowser()
  expect(await finish(world, again, await untilCallback(world, again))).toBe(
    '/console/login?error=user_disabled',
  )
  expect(await userOf(again)).toBeNull()
})

test('a provider that answers nonsense or not at all is a failed login, not an error', async () => {
  const browser = createWebBrowser()
  const callback = await untilCallback(world, browser)
  world.provider.answer('/token', () => ({ status: 500, body: 'no' }))
  expect(await finish(world, browser, callback)).toMatch(/^\/console\/login\?error=/)
  world.provider.answer('/token', null)
  expect(await userOf(browser)).toBeNull()
})

test('a user who refuses at the provider sees why', async () => {
  const denying = await startLoginWorld({ denies: true })
  try {
    const isConsole = ({ pathname }: URL) => pathname.startsWith('/console')
    const { visited } = await createWebBrowser().open(`${denying.gateway.url}/login`, {
      until: isConsole,
    })
    expect(String(visited.at(-1)?.search)).toBe('?error=login_denied')
  } finally {
    await denying.stop()
  }
})

test('an unreachable provider and one with another issuer log nobody in', async () => {
  const broken = await startLoginWorld()
  try {
    const metadata = () => ({
      status: 200,
      body: JSON.stringify({ issuer: 'https://evil.example', jwks_uri: 'https://evil.example/j' }),
    })
    broken.provider.answer('/.well-known/openid-configuration', metadata)
    const start = () => fetch(`${broken.gateway.url}/login`, { redirect: 'manual' })
    const location = '/console/login?error=provider_unreachable'
    expect((await start()).headers.get('location')).toBe(location)
    broken.provider.answer('/.well-known/openid-configuration', null)
    expect((await start()).headers.get('location')).toContain('code_challenge=')
  } finally {
    await broken.stop()
  }
})

test('groups come from the id token where it lists them', async () => {
  const inToken = await startLoginWorld({ groupsInIdToken: true })
  try {
    inToken.provider.user = { subject: 'dora', groups: ['admins'], name: 'Dora' }
    const browser = await inToken.logIn()
    const { user } = await sessionOf(browser, inToken.gateway.url)
    expect(user?.['groups']).toEqual([{ id: 'admins', name: 'admins' }])
    expect(inToken.provider.requests('/me')).toBe(0)
  } finally {
    await inToken.stop()
  }
})
