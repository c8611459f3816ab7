import { describe, expect, test } from 'bun:test'
import { asRecord } from '#lib/json.ts'
import { isBrowserMissing } from '#test/support/browser.ts'
import { useConsole } from '#test/support/console.ts'

describe.skipIf(isBrowserMissing)('the login of a device in a browser (needs chromium)', () => {
  const { site, open: openPage } = useConsole()

  const begin = async () => {
    const response = await fetch(`${site.gateway.url}/login/device`, {
      method: 'POST',
      body: new URLSearchParams({ client_id: 'sluice', name: 'a terminal' }),
    })
    return asRecord(await response.json())
  }
  const askForKey = async (deviceCode: unknown) => {
    const response = await fetch(`${site.gateway.url}/login/device/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
        client_id: 'sluice',
        device_code: String(deviceCode),
      }),
    })
    return asRecord(await response.json())
  }

  test('the link of the command line shows the code, and an approval ends in a key', async () => {
    const begun = await begin()
    const link = new URL(String(begun['verification_uri_complete']))
    const path = link.pathname.replace('/console', '') + link.search
    const visited = await openPage({ path })
    const { page, faults, press, shows, expectAccessible } = visited
    await shows(String(begun['user_code']))
    await shows('Never approve a code that somebody sent you')
    await expectAccessible()
    await press('Approve')
    await shows('Approved.')
    const { access_token: key } = await askForKey(begun['device_code'])
    const headers = { 'x-api-key': String(key) }
    expect((await site.gateway.request('/v1/me', { headers })).status).toBe(200)
    expect(faults).toEqual([])
    await page.close()
  })

  test('a code can be typed and denied', async () => {
    const begun = await begin()
    const visited = await openPage({ path: '/device' })
    const { page, faults, press, fill, shows } = visited
    await fill('Code', String(begun['user_code']))
    await press('Continue')
    await press('Deny')
    await shows('Denied.')
    expect(await askForKey(begun['device_code'])).toMatchObject({ error: 'access_denied' })
    expect(faults).toEqual([])
    await page.close()
  })
})
