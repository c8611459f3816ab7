import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser } from 'puppeteer-core'
import { isBrowserMissing, openBrowser, visit } from '#test/support/browser.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

describe.skipIf(isBrowserMissing)('logins in a browser (needs chromium)', () => {
  let browser: Browser
  let gateway: Gateway

  beforeAll(async () => {
    browser = await openBrowser()
    gateway = await startGateway()
  })
  afterAll(async () => {
    await browser.close()
    await gateway.stop()
  })

  test('the printed link logs in, once, and leaves no code in the address', async () => {
    const code = await gateway.deps.startCodes.create()
    const context = await browser.createBrowserContext()
    const { page, faults } = await visit(context, `${gateway.url}/console/#code=${code}`)
    await page.waitForSelector('.rail')
    expect(page.url()).toBe(`${gateway.url}/console/`)
    // The session outlives the page.
    await page.reload()
    await page.waitForSelector('.rail')
    const [cookie] = await context.cookies()
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' })
    expect(faults).toEqual([])
  })
})
