import { describe, expect, test } from 'bun:test'
import { isBrowserMissing } from '#test/support/browser.ts'
import { useConsole } from '#test/support/console.ts'
import { eventually } from '#test/support/eventually.ts'

describe.skipIf(isBrowserMissing)('models and usage in a browser (needs chromium)', () => {
  const { site, open: openPage } = useConsole()

  const stateOf = async (name: string) => {
    const headers = { authorization: `Bearer ${await site.gateway.token(['admins'])}` }
    const answer = await (await site.gateway.request('/v1/upstreams', { headers })).json()
    const { data } = answer as { data: { name: string; state: string }[] }
    return data.find((upstream) => upstream.name === name)?.state
  }

  test('an upstream is drained after a confirmation, and put back', async () => {
    const { page, faults, open, press, shows, hides, expectAccessible } = await openPage()
    await open('/models', 'Models')
    await press('Drain demo')
    await shows('Take demo out of service?')
    await press('Cancel')
    await hides('Take demo out of service?')
    expect(await stateOf('demo')).toBe('available')
    await press('Drain demo')
    await press('Drain')
    await shows('demo is out of service')
    expect(await stateOf('demo')).toBe('draining')
    await expectAccessible()
    await press('Put back demo')
    await shows('demo is back in service')
    expect(await stateOf('demo')).toBe('available')
    expect(faults).toEqual([])
    await page.close()
  })

  test('the catalogue finds a model, and opens it in the playground', async () => {
    const { page, faults, open, fill, press, shows, hides } = await openPage()
    await open('/models', 'Models')
    await fill('Search models', 'reason')
    await hides('demo-fast')
    await press('Try demo-reasoning in the playground')
    await shows('Ask something')
    await page.waitForFunction(`document.querySelector('select').value === 'demo-reasoning'`)
    expect(faults).toEqual([])
    await page.close()
  })

  test('usage shows a request of the day by model, and as CSV', async () => {
    await site.gateway.post('/v1/responses', { model: 'demo-fast', input: 'Count me' })
    // The ledger writes in batches.
    await eventually('the request is in the ledger', async () => {
      const usage = await site.gateway.request('/v1/usage?group_by=model')
      return (await usage.text()).includes('demo-fast')
    })
    const { page, faults, open, press, shows, expectAccessible } = await openPage()
    await open('/usage', 'Usage')
    for (const span of ['24 h', '30 days']) {
      await press(span)
      await shows('demo-fast')
      await page.waitForFunction(`[...document.querySelectorAll('.chart-bar rect:not(.chart-hit)')]
        .some((bar) => Number(bar.getAttribute('height')) > 0)`)
    }
    await expectAccessible()
    await press('Key')
    await shows('With a token or session')
    await page.evaluate(`{
      const create = URL.createObjectURL
      URL.createObjectURL = (file) => {
        file.text().then((saved) => { window.saved = saved })
        return create.call(URL, file)
      }
    }`)
    await press('CSV')
    await page.waitForFunction(`window.saved?.includes('demo-fast')`)
    expect(faults).toEqual([])
    await page.close()
  })
})

describe.skipIf(isBrowserMissing)('the installer in a browser (needs chromium)', () => {
  const { open: openPage } = useConsole()

  test('a refused source says why in the dialog, and Escape closes it', async () => {
    const { page, open, press, fill, choose, shows, hides, expectAccessible } = await openPage()
    await open('/installer', 'Local models')
    await shows('No local models')
    await expectAccessible()
    await press('Install a model')
    await choose('Source', 'url')
    await fill('Model', 'not a url')
    await page.keyboard.press('Enter')
    await page.waitForSelector('dialog .notice.bad')
    await expectAccessible()
    await page.keyboard.press('Escape')
    await hides('Expected SHA-256')
    const focused = await page.evaluate('document.activeElement.textContent')
    expect(focused).toBe('Install a model')
    await page.close()
  })
})
