import { describe, expect, test } from 'bun:test'
import { asRecord } from '#lib/json.ts'
import { isBrowserMissing } from '#test/support/browser.ts'
import { useConsole } from '#test/support/console.ts'

const microphone = ['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream']

/** More than any page has controls. */
const tabsMax = 200

/** The accessible name of the control with the focus, which has to be seen. */
const focused = `(() => {
  const one = document.activeElement
  const { outlineStyle, outlineWidth } = getComputedStyle(one)
  const isSeen = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1
  const name = one.getAttribute('aria-label') ??
    document.querySelector('label[for="' + one.id + '"]')?.firstChild?.textContent ??
    (one === document.body ? '' : one.textContent)
  return { name: name.trim(), isSeen: isSeen || one === document.body }
})()`

describe.skipIf(isBrowserMissing)('pages with keys alone (needs chromium)', () => {
  const { site, open: openPage } = useConsole({}, microphone)

  const request = async (path: string, body?: unknown) =>
    site.gateway.request(path, {
      headers: {
        authorization: `Bearer ${await site.gateway.token(['admins'])}`,
        'content-type': 'application/json',
      },
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    })
  const read = async (path: string) => asRecord(await (await request(path)).json())
  const respond = () => request('/v1/responses', { model: 'demo-fast', input: 'hi' })

  test('each page’s main task is done with Tab, Enter, Space and the arrows', async () => {
    const { page, faults, shows } = await openPage()
    const { keyboard } = page

    /** Tab, until the control with this name has the focus. */
    const reach = async (name: string) => {
      for (let tabs = 0; tabs < tabsMax; tabs++) {
        await keyboard.press('Tab')
        const at = asRecord(await page.evaluate(focused))
        expect(at, `the focus on "${at['name']}" is seen`).toMatchObject({ isSeen: true })
        if (at['name'] === name) return
      }
      throw new Error(`Tab does not lead to "${name}" on ${page.url()}`)
    }
    /** A control that a change on the page brings or enables. */
    const waitFor = (name: string) =>
      page.waitForFunction(`[...document.querySelectorAll('button')].some((one) => !one.disabled &&
        (one.getAttribute('aria-label') ?? one.textContent.trim()) === ${JSON.stringify(name)})`)
    const press = async (name: string, key: 'Enter' | 'Space' = 'Enter') => {
      await waitFor(name)
      await reach(name)
      await keyboard.press(key)
    }
    const fill = async (label: string, value: string) => {
      await page.waitForFunction(`document.body.innerText.includes(${JSON.stringify(label)}) ||
        document.querySelector('[aria-label="${label}"]') !== null`)
      // Tab selects what the field has.
      await reach(label)
      await keyboard.type(value)
    }
    const open = async (title: string) => {
      await reach(title)
      await keyboard.press('Enter')
      await page.waitForFunction(`document.querySelector('h1')?.innerText === '${title}' &&
        document.querySelector('.skeleton, [aria-busy=true]') === null`)
    }

    await open('Live speech')
    await press('Start recording')
    await shows('Recording')
    await press('Stop')
    await shows('Ready')
    await page.waitForFunction(`/Omitted\\s+0 s/.test(document.body.innerText)`)

    await open('Traffic')
    await press('Drain demo')
    await press('Drain')
    await shows('demo is out of service')
    // The button that was pressed, with the focus.
    await page.waitForFunction(`document.activeElement.ariaLabel === 'Put back demo'`)
    await keyboard.press('Enter')
    await shows('demo is back in service')

    await open('Limits and budgets')
    await press('By model', 'Space')
    await press('Limit a model')
    await shows('Requests/min')
    await keyboard.type('demo-fast')
    await fill('Requests/min', '0')
    await keyboard.press('Enter')
    await shows('Limits saved')
    expect((await respond()).status).toBe(429)
    await press('Remove the limits of demo-fast')
    await press('Remove')
    await shows('Limits of demo-fast removed')
    expect((await respond()).status).toBe(200)

    await open('Branding')
    await fill('Accent, Light', '#0b6e4f')
    await press('Save')
    await shows('Theme saved')
    expect(await read('/v1/branding/theme')).toMatchObject({
      colors: { light: { primary: '#0b6e4f' } },
    })

    await open('Settings')
    await fill('Passages per question', '7')
    await press('Review and save')
    await press('Save')
    await shows('Settings saved')
    expect(await read('/v1/config')).toMatchObject({ retrieval_k: 7 })
    await reach('At run time')
    await keyboard.press('ArrowRight')
    await keyboard.press('ArrowRight')
    await press('Remove all changes')
    await press('Roll back')
    await shows('Configuration rolled back')

    // The ledger writes in batches; this page is last.
    await open('Usage')
    await press('24 h', 'Space')
    await shows('demo-fast')
    await press('Key')
    await shows('With a token or session')

    const begun = await fetch(`${site.gateway.url}/login/device`, {
      method: 'POST',
      body: new URLSearchParams({ client_id: 'sluice', name: 'a terminal' }),
    })
    const code = String(asRecord(await begun.json())['user_code'])
    await page.goto(`${site.gateway.url}/console/device`)
    await fill('Code', code)
    await keyboard.press('Enter')
    await press('Approve')
    await shows('Approved.')
    expect(await read(`/v1/device-logins/${code}`)).toMatchObject({ status: 'approved' })
    expect(faults).toEqual([])
    await page.close()
  })
})
