import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { openDatabase } from '#db/client.ts'
import { asRecord } from '#lib/json.ts'
import { openTestDatabase, serverUrl, type TestDatabase } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { createWebBrowser, type WebBrowser } from '#test/support/oidc/web-browser.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { auditOf, type LoginWorld, rowOf, sessionOf, startLoginWorld } from './world.ts'

let world: LoginWorld
let url: string

beforeAll(async () => {
  world = await startLoginWorld({ refreshTokens: true, backchannelLogout: true })
  url = world.gateway.url
})
afterAll(() => world.stop())

const isLoggedIn = async (browser: WebBrowser, at = url) =>
  (await browser.call(`${at}/v1/me`)).status === 200

async function idOf(browser: WebBrowser): Promise<{ id: string; userId: string }> {
  const { session, user } = await sessionOf(browser, url)
  return { id: String(session?.['id']), userId: String(user?.['id']) }
}

/** Sets a time of a session in the database, as if it had passed. */
async function setTime(
  browser: WebBrowser,
  column: 'expires_at' | 'last_used_at' | 'renew_at',
  secondsAgo: number,
): Promise<string> {
  const { id, userId } = await idOf(browser)
  const { database, auth } = world.gateway.deps
  await database.drizzle.execute(
    sql`update login_session set ${sql.identifier(column)} = now() - make_interval(secs => ${secondsAgo})
      where id = ${id}`,
  )
  await auth.changes.apply({ what: 'session', id: userId })
  return id
}

describe('a session ends', () => {
  test('at the end of its lifetime', async () => {
    const browser = await world.logIn()
    await setTime(browser, 'expires_at', 1)
    const refused = await browser.call(`${url}/v1/me`)
    expect(refused.status).toBe(401)
    expect(asRecord(asRecord(await refused.json())['error'])['code']).toBe('invalid_session')
  })

  test('when it was not used', async () => {
    const browser = await world.logIn()
    await setTime(browser, 'last_used_at', 28_801)
    expect(await isLoggedIn(browser)).toBeFalse()
    const other = await world.logIn()
    await setTime(other, 'last_used_at', 28_000)
    expect(await isLoggedIn(other)).toBeTrue()
  })

  test('by a logout, which leads to that of the provider', async () => {
    const browser = await world.logIn()
    const { id, userId } = await idOf(browser)
    const value = browser.cookie('sluice_session')
    const out = await browser.call(`${url}/v1/session`, { method: 'DELETE' })
    const { logout_url: logoutUrl } = asRecord(await out.json())
    const end = new URL(String(logoutUrl))
    expect(end.origin + end.pathname).toBe(`${world.provider.issuer}/session/end`)
    expect(end.searchParams.get('post_logout_redirect_uri')).toBe(`${url}/console/`)
    expect(end.searchParams.get('id_token_hint')).toMatch(/^eyJ/)
    expect((await browser.open(end.href)).response.status).toBe(200)
    expect(browser.cookie('sluice_session')).toBeUndefined()
    browser.setCookie('127.0.0.1', value?.name ?? '', value?.value ?? '')
    expect(await isLoggedIn(browser)).toBeFalse()
    expect(await auditOf(world, id)).toEqual([
      ['session.end', userId, '127.0.0.1', 'logout'],
      ['session.create', userId, '127.0.0.1', 'oidc'],
    ])
  })

  test('by the address /logout, but not from a link on another site', async () => {
    const browser = await world.logIn()
    const asOther = { 'sec-fetch-site': 'cross-site' }
    await browser.call(`${url}/logout`, { headers: asOther })
    expect(await isLoggedIn(browser)).toBeTrue()
    const out = await browser.call(`${url}/logout`)
    expect(out.headers.get('location')).toStartWith(`${world.provider.issuer}/session/end`)
    expect(await isLoggedIn(browser)).toBeFalse()
  })

  test('by its user from another session, or with all others', async () => {
    const [here, lost] = [await world.logIn(), await world.logIn()]
    const { id } = await idOf(lost)
    const list = asRecord(await (await here.call(`${url}/v1/sessions`)).json())
    const own = (await idOf(here)).id
    expect(list['data']).toContainEqual(expect.objectContaining({ id, current: false }))
    expect(list['data']).toContainEqual(expect.objectContaining({ id: own, current: true }))
    await here.call(`${url}/v1/sessions/${id}`, { method: 'DELETE' })
    expect([await isLoggedIn(lost), await isLoggedIn(here)]).toEqual([false, true])
    await here.call(`${url}/v1/sessions`, { method: 'DELETE' })
    expect(await isLoggedIn(here)).toBeFalse()
  })

  test('never by another user', async () => {
    const mine = await world.logIn()
    const root = { authorization: `Bearer ${await world.gateway.token(['admins'], 'root')}` }
    const end = { method: 'DELETE', headers: root }
    expect((await fetch(`${url}/v1/sessions/${(await idOf(mine)).id}`, end)).status).toBe(404)
    expect((await fetch(`${url}/v1/sessions`, end)).status).toBe(200)
    expect(await isLoggedIn(mine)).toBeTrue()
  })

  test('when the provider ends it: a back-channel logout', async () => {
    const browser = await world.logIn()
    const { visited, response } = await browser.open(`${world.provider.issuer}/session/end`)
    const form = await response.text()
    const [, xsrf = ''] = /name="xsrf" value="(\w+)"/.exec(form) ?? []
    const cookies = browser.cookies().map(({ name, value }) => `${name}=${value}`)
    await fetch(new URL('/session/end/confirm', visited[0]), {
      method: 'POST',
      headers: { cookie: cookies.join('; ') },
      body: new URLSearchParams({ xsrf, logout: 'yes' }),
      redirect: 'manual',
    })
    await eventually('the session ends', async () => !(await isLoggedIn(browser)))
  })

  test('never by a forged logout token', async () => {
    const browser = await world.logIn()
    const none = await browser.call(`${url}/login/backchannel-logout`, {
      method: 'POST',
      body: new URLSearchParams({
        logout_token: await world.gateway.token(['users'], 'ann'),
      }),
    })
    expect(none.status).toBe(400)
    expect(await isLoggedIn(browser)).toBeTrue()
    // A token of the provider for this client, but not one of a logout.
    const out = await browser.call(`${url}/v1/session`, { method: 'DELETE' })
    const hint = new URL(String(asRecord(await out.json())['logout_url'])).searchParams
    const again = await world.logIn(browser)
    const idToken = await fetch(`${url}/login/backchannel-logout`, {
      method: 'POST',
      body: new URLSearchParams({ logout_token: hint.get('id_token_hint') ?? '' }),
    })
    expect(idToken.status).toBe(400)
    expect(await isLoggedIn(again)).toBeTrue()
  })
})

describe('expired tokens', () => {
  test('are refreshed, with the groups of that moment', async () => {
    world.provider.user = { subject: 'eve', groups: ['users'], name: 'Eve' }
    const browser = await world.logIn()
    const before = await rowOf(world, (await idOf(browser)).id)
    world.provider.user = { subject: 'eve', groups: ['admins'], name: 'Eve' }
    // Groups of one second have no order.
    await Bun.sleep(1_000)
    const id = await setTime(browser, 'renew_at', 1)
    const me = asRecord(await (await browser.call(`${url}/v1/me`)).json())
    expect(me['groups']).toEqual([{ id: 'admins', name: 'admins' }])
    const after = await rowOf(world, id)
    expect(after?.['refresh_token']).toMatch(/^sluice1\./)
    expect(after?.['refresh_token']).not.toBe(before?.['refresh_token'])
    expect(new Date(String(after?.['renew_at'])).getTime()).toBeGreaterThan(Date.now())
    world.provider.user = { subject: 'ann', groups: ['users'], name: 'Ann Example' }
  })

  test('of a session that the provider has revoked end it', async () => {
    const browser = await world.logIn()
    world.provider.revoke()
    const id = await setTime(browser, 'renew_at', 1)
    expect(await isLoggedIn(browser)).toBeFalse()
    expect(await rowOf(world, id)).toBeUndefined()
  })

  test('are refreshed once by many requests', async () => {
    const browser = await world.logIn()
    await setTime(browser, 'renew_at', 1)
    const before = world.provider.requests('/token')
    const all = await Promise.all(Array.from({ length: 10 }, () => isLoggedIn(browser)))
    expect(all).toEqual(all.map(() => true))
    expect(world.provider.requests('/token') - before).toBe(1)
  })

  test('outlive a short outage of the provider', async () => {
    const browser = await world.logIn()
    world.provider.answer('/token', () => ({ status: 503, body: '{}' }))
    await setTime(browser, 'renew_at', 1)
    expect(await isLoggedIn(browser)).toBeTrue()
    world.provider.answer('/token', null)
    await setTime(browser, 'renew_at', 1)
    expect(await isLoggedIn(browser)).toBeTrue()
  })

  test('without a refresh token are the end of the session', async () => {
    const short = await startLoginWorld({ accessTokenS: 90 })
    try {
      const browser = await short.logIn()
      const { session } = await sessionOf(browser, short.gateway.url)
      const leftMs = Date.parse(String(session?.['expires_at'])) - Date.now()
      expect(leftMs).toBeLessThanOrEqual(90_000)
    } finally {
      await short.stop()
    }
  })
})

describe('two replicas', () => {
  let database: TestDatabase
  let here: LoginWorld
  let there: LoginWorld
  beforeAll(async () => {
    database = await openTestDatabase()
    here = await startLoginWorld({ database, refreshTokens: true })
    const again =
      serverUrl === undefined
        ? database
        : await openDatabase({ ...database.place, connectionsMax: 2, log: quietLog })
    const environment = {
      SLUICE_LOGIN_ISSUER: here.provider.issuer,
      SLUICE_LOGIN_CLIENT_ID: here.provider.clientId,
      SLUICE_LOGIN_CLIENT_SECRET: here.provider.clientSecret,
      SLUICE_PUBLIC_URL: here.gateway.url,
    }
    there = await startLoginWorld({ database: again, environment })
  })
  afterAll(async () => {
    await here.stop()
    await there.stop()
    await database.close()
  })

  const isKnownThere = async (browser: WebBrowser) => {
    const cookie = browser.cookie('sluice_session')
    const headers = { cookie: `${cookie?.name}=${cookie?.value}` }
    return (await fetch(`${there.gateway.url}/v1/me`, { headers })).status === 200
  }

  test('a login at one is a session at both, until it ends at one', async () => {
    const browser = await here.logIn()
    expect(await isKnownThere(browser)).toBeTrue()
    await browser.call(`${here.gateway.url}/v1/session`, { method: 'DELETE' })
    await eventually('the other replica refuses it', async () => !(await isKnownThere(browser)))
  })

  test('a login begins at one and ends at the other', async () => {
    const browser = createWebBrowser()
    const { visited } = await browser.open(`${here.gateway.url}/login`, {
      until: ({ pathname }) => pathname === '/login/callback',
    })
    const callback = visited.at(-1)
    const login = browser.cookie('sluice_login')
    const finished = await fetch(there.gateway.url + callback?.pathname + callback?.search, {
      headers: { cookie: `${login?.name}=${login?.value}` },
      redirect: 'manual',
    })
    expect(finished.headers.get('location')).toBe('/console/')
    expect(finished.headers.getSetCookie().join()).toContain('sluice_session')
  })

  test('an open WebSocket at one closes when the session ends at the other', async () => {
    const browser = await here.logIn()
    const cookie = browser.cookie('sluice_session')
    const address = there.gateway.url.replace('http', 'ws')
    const socket = new WebSocket(`${address}/v1/responses`, {
      headers: { cookie: `${cookie?.name}=${cookie?.value}`, origin: here.gateway.url },
    } as never)
    const opened = Promise.withResolvers<boolean>()
    const closed = Promise.withResolvers<number>()
    socket.addEventListener('open', () => opened.resolve(true))
    socket.addEventListener('close', ({ code }) => {
      opened.resolve(false)
      closed.resolve(code)
    })
    expect(await opened.promise).toBeTrue()
    await browser.call(`${here.gateway.url}/v1/session`, { method: 'DELETE' })
    expect(await closed.promise).toBe(1008)
  })

  test('they refresh the tokens of a session once', async () => {
    const browser = await here.logIn()
    const { user } = await sessionOf(browser, here.gateway.url)
    await database.drizzle.execute(
      sql`update login_session set renew_at = now() - interval '1 second' where user_id = ${String(user?.['id'])}`,
    )
    for (const { gateway } of [here, there]) {
      await gateway.deps.auth.changes.apply({ what: 'session', id: String(user?.['id']) })
    }
    const before = here.provider.requests('/token')
    const results = await Promise.all(
      [1, 2, 3].flatMap(() => [isLoggedIn(browser, here.gateway.url), isKnownThere(browser)]),
    )
    expect(results).toEqual(results.map(() => true))
    expect(here.provider.requests('/token') - before).toBe(1)
  })
})
