import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { sealLoginState } from '#sessions/login-state.ts'
import { createWebBrowser, type WebBrowser } from '#test/support/oidc/web-browser.ts'
import { finish, type LoginWorld, sessionOf, startLoginWorld, untilCallback } from './world.ts'

let world: LoginWorld
let url: string

beforeAll(async () => {
  world = await startLoginWorld()
  url = world.gateway.url
})
afterAll(() => world.stop())

const userOf = async (browser: WebBrowser) => (await sessionOf(browser, url)).user

describe('a tampered login gives no session', () => {
  const failed = '/console/login?error=login_failed'
  const expired = '/console/login?error=login_expired'

  test('another state', async () => {
    const browser = createWebBrowser()
    const callback = await untilCallback(world, browser)
    callback.searchParams.set('state', 'another')
    expect(await finish(world, browser, callback)).toBe(failed)
    expect(await userOf(browser)).toBeNull()
  })

  test('the callback of another browser, with a login of its own', async () => {
    const [victim, attacker] = [createWebBrowser(), createWebBrowser()]
    await untilCallback(world, victim)
    expect(await finish(world, victim, await untilCallback(world, attacker))).toBe(failed)
    expect(await userOf(victim)).toBeNull()
  })

  test('the callback of another browser, without any login', async () => {
    const victim = createWebBrowser()
    expect(await finish(world, victim, await untilCallback(world, createWebBrowser()))).toBe(
      expired,
    )
    expect(await userOf(victim)).toBeNull()
  })

  test('another nonce', async () => {
    const browser = createWebBrowser()
    const callback = await untilCallback(world, browser, ({ searchParams }) =>
      searchParams.set('nonce', 'another'),
    )
    expect(await finish(world, browser, callback)).toBe(failed)
    expect(await userOf(browser)).toBeNull()
  })

  test('another PKCE challenge', async () => {
    const browser = createWebBrowser()
    const callback = await untilCallback(world, browser, ({ searchParams }) => {
      expect(searchParams.get('code_challenge_method')).toBe('S256')
      searchParams.set('code_challenge', 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM')
    })
    expect(await finish(world, browser, callback)).toBe(failed)
    expect(await userOf(browser)).toBeNull()
  })

  test('another issuer in the callback', async () => {
    const browser = createWebBrowser()
    const callback = await untilCallback(world, browser)
    callback.searchParams.set('iss', 'https://evil.example')
    expect(await finish(world, browser, callback)).toBe(failed)
    expect(await userOf(browser)).toBeNull()
  })

  test('a replayed callback', async () => {
    const browser = createWebBrowser()
    const callback = await untilCallback(world, browser)
    const login = browser.cookie('sluice_login')
    expect(await finish(world, browser, callback)).toBe('/console/')
    expect(await finish(world, createWebBrowser(), callback)).toBe(expired)
    const thief = createWebBrowser()
    thief.setCookie('127.0.0.1', login?.name ?? '', login?.value ?? '')
    expect(await finish(world, thief, callback)).toBe(failed)
    expect(await userOf(thief)).toBeNull()
  })

  test('a state that is too old, altered, or from another gateway', async () => {
    const { sealer } = world.gateway.deps
    const state = {
      state: 's',
      nonce: 'n',
      verifier: 'v',
      returnTo: '/console/',
      origin: url,
      startedAtMs: Date.now() - 601_000,
      former: '',
    }
    const old = sealLoginState(sealer, state)
    const young = sealLoginState(sealer, { ...state, startedAtMs: Date.now() })
    const altered = `${young.slice(0, -5)}AAAAA`
    const foreign = sealLoginState(sealer, {
      ...state,
      startedAtMs: Date.now(),
      origin: 'https://other.example',
    })
    for (const value of [old, altered, foreign, 'x']) {
      const browser = createWebBrowser()
      browser.setCookie('127.0.0.1', `sluice_login_${world.gateway.port}`, value)
      const callback = new URL(`${url}/login/callback?code=c&state=s`)
      expect(await finish(world, browser, callback)).toBe(expired)
    }
  })
})
