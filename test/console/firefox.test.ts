import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser } from 'puppeteer-core'
import { firefox, openFirefox, visit } from '#test/support/browser.ts'
import { controlsOf } from '#test/support/console.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

describe.skipIf(firefox === null)('the console in Firefox (needs firefox-esr)', () => {
  let browser: Browser
  let gateway: Gateway

  beforeAll(async () => {
    browser = await openFirefox()
    gateway = await startGateway()
  })
  afterAll(async () => {
    await browser.close()
    await gateway.stop()
  })

  test('a login and every page of the navigation, without a failure', async () => {
    const { page, faults } = await visit(browser, `${gateway.url}/console/`)
    const { fill, press } = controlsOf(page)
    await fill('Token or API key', await gateway.token(['admins']))
    await press('Log in')
    await page.waitForSelector('.rail')
    const paths = await page.$$eval('.rail nav a', (links) =>
      links.map((link) => link.getAttribute('href')),
    )
    expect(paths.length).toBeGreaterThan(8)
    for (const path of paths) {
      await page.evaluate(`document.querySelector('.rail a[href="${path}"]').click()`)
      await page.waitForFunction(`location.pathname.replace(/[/]$/, '') === '${path?.replace(/\/$/, '')}' &&
        document.querySelector('main h1, .page h1') !== null &&
        document.querySelector('.skeleton, [aria-busy=true]') === null`)
      expect(await page.$$eval('.notice.bad', (all) => all.length), String(path)).toBe(0)
    }
    expect(faults).toEqual([])
    await page.close()
  })
})
