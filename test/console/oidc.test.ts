import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser } from 'puppeteer-core'
import { isBrowserMissing, openBrowser, visit } from '#test/support/browser.ts'
import { controlsOf } from '#test/support/console.ts'
import { type LoginWorld, startLoginWorld } from '../sessions/world.ts'

describe.skipIf(isBrowserMissing)('a login at an OpenID provider (needs chromium)', () => {
  let browser: Browser
  let world: LoginWorld

  beforeAll(async () => {
    // The provider is another site than the gateway: its cookies and redirects are those of one.
    browser = await openBrowser([
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
    ])
    world = await startLoginWorld({ groupsInIdToken: true })
  })
  afterAll(async () => {
    await browser.close()
    await world.stop()
  })

  const openConsole = async (path: string) => {
    const { gateway, provider } = world
    const { host } = new URL(provider.issuer)
    const context = await browser.createBrowserContext()
    const visited = await visit(context, `${gateway.url}/console${path}`, [host])
    const controls = controlsOf(visited.page)
    const isAt = (place: string) =>
      visited.page.waitForFunction(`location.href === ${JSON.stringify(gateway.url + place)}`)
    return { ...visited, ...controls, isAt, context }
  }
  const logIn = 'Continue with single sign-on'
  const links = `[...document.querySelectorAll('.rail nav a')].map((link) => link.textContent)`

  test('returns to the page, shows what the groups allow, and ends at the provider too', async () => {
    world.provider.user = { subject: 'ann', groups: ['users'], name: 'Ann Example' }
    const { page, faults, press, shows, isAt, context } = await openConsole('/usage?by=user')
    await press(logIn)
    await isAt('/console/usage?by=user')
    await shows('Ann Example')
    const shown = await page.evaluate(links)
    expect(shown).toContain('Playground')
    expect(shown).not.toContain('Users')
    const session = (await context.cookies()).find(({ name }) => name.includes('sluice_session'))
    expect(session).toMatchObject({ httpOnly: true, sameSite: 'Strict' })

    await press('Log out')
    // The provider asks before it ends its own session.
    await page.waitForSelector('button[name=logout]')
    await page.click('button[name=logout]')
    await isAt('/console/')
    await shows('Log in to Sluice')
    // The page of the provider has no icon.
    expect(faults.filter((fault) => !fault.includes('404'))).toEqual([])
    await page.close()
  })

  test('after a session that ended leads back to the page that was open', async () => {
    world.provider.user = { subject: 'root', groups: ['admins'], name: 'Root Example' }
    const { page, press, shows, open, isAt } = await openConsole('/')
    await press(logIn)
    await shows('Root Example')
    await open('/users', 'Users')
    // Elsewhere: the page does not know.
    await page.evaluate(
      `fetch('/v1/session', { method: 'DELETE', headers: { 'x-sluice-csrf': '1' } })`,
    )
    await page.evaluate(`document.querySelector('.rail a[href="/console/groups"]')?.click()`)
    await shows('Your session has ended.')
    const path = String(await page.evaluate('location.pathname'))
    expect(path).not.toBe('/console/')
    await press(logIn)
    await isAt(path)
    await shows('Root Example')
    expect(await page.evaluate(links)).toContain('Users')
    await page.close()
  })
})
