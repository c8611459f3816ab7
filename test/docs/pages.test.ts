import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser } from 'puppeteer-core'
import { asRecord } from '#lib/json.ts'
import { isBrowserMissing, openBrowser, visit } from '#test/support/browser.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

/** The pages as a user opens them, with no other host reachable. */
describe.skipIf(isBrowserMissing)('in a browser (needs the package chromium)', () => {
  let browser: Browser
  let gateway: Gateway
  let closedGateway: Gateway
  let apiKey: string

  beforeAll(async () => {
    browser = await openBrowser()
    gateway = await startGateway()
    closedGateway = await startGateway({ docs: { requireAuth: true } })
    apiKey = await makeKey(gateway)
  })
  afterAll(async () => {
    await browser.close()
    await gateway.stop()
    await closedGateway.stop()
  })

  test('/docs accepts an API key and calls the API with it', async () => {
    const { page, faults, waitForText } = await visit(browser, `${gateway.url}/docs`)
    await page.waitForSelector('.btn.authorize')
    await page.click('.btn.authorize')
    const box = '.modal-ux .auth-container:nth-child(2)'
    await waitForText(box, 'X-Api-Key')
    const focused = await page.evaluate(
      "document.activeElement.closest('.auth-container')?.innerText ?? ''",
    )
    expect(focused).toContain('bearer')
    const scrolled = await page.evaluate("document.querySelector('.modal-ux-content').scrollTop")
    expect(scrolled).toBe(0)
    await page.type(`${box} input`, apiKey)
    await page.click(`${box} button[type=submit]`)
    await page.click('.close-modal')

    await page.click('#operations-tag-Models')
    const operation = '#operations-Models-listModels'
    await page.waitForSelector(operation)
    await page.click(`${operation} .opblock-summary-control`)
    await page.waitForSelector(`${operation} .execute`)
    const answered = page.waitForResponse((answer) => answer.url().endsWith('/v1/models'))
    await page.click(`${operation} .execute`)
    expect((await answered).request().headers()['x-api-key']).toBe(apiKey)
    await waitForText(`${operation} .live-responses-table`, '"id": "demo"')
    expect(faults).toEqual([])
    await page.close()
  })

  test('/scalar accepts an API key and calls the API with it', async () => {
    const { page, faults, waitForText } = await visit(browser, `${gateway.url}/scalar`)
    const box = 'input.scalar-password-input'
    await page.waitForSelector(box)
    await page.type(box, apiKey)
    const operation = '[id$="/GET/v1/models"]'
    await page.waitForSelector(`${operation} .show-api-client-button`)
    await page.click(`${operation} .show-api-client-button`)
    const send = '[data-addressbar-action="send"]'
    await page.waitForSelector(send, { visible: true })
    const answered = page.waitForResponse((answer) => answer.url().endsWith('/v1/models'))
    await page.click(send)
    expect((await answered).request().headers()['x-api-key']).toBe(apiKey)
    await waitForText('body', '"id": "demo"')
    expect(faults).toEqual([])
    await page.close()
  })

  test.each(['/docs', '/scalar'])(
    'with docs.require_auth, %s prompts for a credential and loads the document with it',
    async (path) => {
      const { page, faults, waitForText } = await visit(browser, closedGateway.url + path)
      await page.waitForSelector('#credential input')
      await page.type('#credential input', 'sk-svc-v1-wrong')
      await page.click('#credential button')
      await waitForText('#credential', 'This API key is not valid.')
      await page.evaluate("document.querySelector('#credential input').value = ''")
      await page.type('#credential input', await makeKey(closedGateway))
      await page.click('#credential button')
      await waitForText('body', 'A streaming gateway')
      expect(await page.$('#credential')).toBeNull()
      // The browser notes what was refused.
      expect(faults.filter((fault) => !fault.includes('401 (Unauthorized)'))).toEqual([])
      await page.close()
    },
  )
})

async function makeKey(gateway: Gateway): Promise<string> {
  const answer = await gateway.post('/v1/api-keys', { name: 'for the pages' })
  return String(asRecord(await answer.json())['key'])
}
