import { describe, expect, test } from 'bun:test'
import { isBrowserMissing, visit } from '#test/support/browser.ts'
import { controlsOf, useConsole } from '#test/support/console.ts'

describe.skipIf(isBrowserMissing)('the console in a browser (needs chromium)', () => {
  const { site, open: openPage } = useConsole()

  test('a wrong token is refused with a reason, and the form stays usable', async () => {
    const { page, faults } = await visit(site.browser, `${site.gateway.url}/console/`)
    const { fill, press, shows, expectAccessible } = controlsOf(page)
    await press('Log in')
    await shows('Paste a token or an API key.')
    await fill('Token or API key', 'not-a-token')
    await press('Log in')
    await shows('invalid_token')
    await expectAccessible()
    // The browser notes the status of refused requests.
    expect(faults.filter((fault) => !fault.includes('401'))).toEqual([])
    await page.close()
  })

  test('the start page makes a key, and its snippet works with it', async () => {
    const { page, faults, press, shows, expectAccessible } = await openPage()
    await shows('Accepting requests')
    await press('Create a key for these snippets')
    await shows('It is shown on this page until you leave it')
    for (const label of ['Database', 'Upstreams', 'Speech engines']) await shows(label)
    const clients = [
      'OpenAI · Python',
      'OpenAI · Node',
      'Anthropic',
      'Codex',
      'Claude Code',
      'LangChain',
    ]
    for (const client of clients) {
      await press(client)
      await page.waitForFunction(`(({ innerText }) => innerText.includes('sk-svc-v1-') &&
        innerText.includes('${site.gateway.url}/'))(document.querySelector('[role=tabpanel] .code'))`)
    }
    await press('curl')
    await page.waitForFunction(`document.querySelector('.code').innerText.includes('curl -N')`)
    const snippet = String(await page.evaluate(`document.querySelector('.code code').textContent`))
    const key = /sk-svc-v1-\w+/.exec(snippet)?.[0]
    const url = /curl -N (\S+)/.exec(snippet)?.[1]
    const body = /-d '(.*)'/.exec(snippet)?.[1]
    const response = await fetch(String(url), {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body }),
    })
    expect(response.status).toBe(200)
    expect(await response.text()).toContain('response.completed')
    await expectAccessible()
    expect(faults).toEqual([])
    await page.close()
  })

  test('the session survives a reload, and ends at the logout', async () => {
    const { page, faults, press, shows } = await openPage()
    await page.reload({ waitUntil: 'networkidle0' })
    await shows('Hello, tester')
    // The first control of a page leads past the navigation.
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.waitForFunction(`document.activeElement.id === 'content'`)
    await press('Log out')
    await shows('Log in to Sluice')
    await page.reload({ waitUntil: 'networkidle0' })
    await shows('Log in to Sluice')
    expect(faults).toEqual([])
    await page.close()
  })

  test('a session that ended elsewhere leads to the login page, which says so', async () => {
    const { page, shows } = await openPage()
    await shows('Accepting requests')
    await page.deleteCookie(...(await page.cookies()))
    await page.click('.rail a[href="/console/playground"]')
    await shows('Your session has ended.')
    await page.close()
  })

  test('the navigation shows only what the permissions allow', async () => {
    const { page, shows } = await openPage({ groups: ['users'] })
    await shows('Accepting requests')
    const links = await page.$$eval('.rail nav a', (all) => all.map((link) => link.textContent))
    expect(links).toContain('Playground')
    expect(links).toContain('Files')
    for (const title of ['Local models', 'Traffic', 'Audit log']) expect(links).not.toContain(title)
    await page.close()
  })

  test('every text is there in German, and the choice survives a reload', async () => {
    const { page, faults, press, shows, expectAccessible } = await openPage()
    await press('DE, Deutsch')
    await shows('Client verbinden')
    await page.reload({ waitUntil: 'networkidle0' })
    await shows('Nimmt Anfragen an')
    expect(await page.evaluate('document.documentElement.lang')).toBe('de')
    await expectAccessible()
    expect(faults).toEqual([])
    await page.close()
  })

  test('the theme and texts of the brand are applied', async () => {
    const headers = {
      authorization: `Bearer ${await site.gateway.token(['admins'])}`,
      'content-type': 'application/json',
    }
    const theme = await (await site.gateway.request('/v1/branding/theme', { headers })).json()
    const { logo_url: _, ...tokens } = theme as Record<string, unknown>
    const changed = await site.gateway.request('/v1/branding/theme', {
      method: 'PUT',
      headers,
      body: JSON.stringify({ ...tokens, product_name: 'Weir', radius_px: 2 }),
    })
    expect(changed.status).toBe(200)
    const texts = await site.gateway.request('/v1/translations/en', {
      method: 'PATCH',
      headers,
      body: JSON.stringify({ console: { 'start.clients': 'Bring your own client' } }),
    })
    expect(texts.status).toBe(200)
    const { page, shows } = await openPage()
    await shows('Bring your own client')
    await shows('Weir')
    const radius = `getComputedStyle(document.querySelector('.card')).borderRadius`
    await page.waitForFunction(`${radius} === '2px'`)
    await site.gateway.request('/v1/branding/theme/reset', { method: 'POST', headers })
    await site.gateway.request('/v1/translations/reset', { method: 'POST', headers })
    await page.close()
  })
})
