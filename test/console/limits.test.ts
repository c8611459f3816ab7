import { describe, expect, test } from 'bun:test'
import { isBrowserMissing } from '#test/support/browser.ts'
import { useConsole } from '#test/support/console.ts'

describe.skipIf(isBrowserMissing)('limits in a browser (needs chromium)', () => {
  const { site, open: openPage } = useConsole({
    budgets: {
      default: { tokens_per_day: 1_000_000, soft_tokens_per_day: 1 },
      user: {},
      group: {},
      key: {},
    },
  })

  test('administrators see who is at the limit, and limit a model', async () => {
    const { page, faults, open, press, fill, shows, hides, expectAccessible } = await openPage()
    const token = await site.gateway.token(['users'], 'other')
    const respond = () =>
      site.gateway.request('/v1/responses', {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'demo-fast', input: 'hi' }),
      })
    expect((await respond()).status).toBe(200)
    await open('/limits', 'Limits and budgets')
    await shows('At or near the limit now')
    await shows('most: other')
    await shows('Exceeded (')
    await expectAccessible()
    await press('By model')
    await shows('No limits here')
    await press('Limit a model')
    await fill('Model', 'demo-fast')
    await fill('Requests/min', '1.5')
    await shows('A whole number is needed.')
    await fill('Requests/min', '0')
    await expectAccessible()
    await press('Save')
    await shows('Limits saved')
    await shows('0 of 0')
    expect((await respond()).status).toBe(429)
    await press('Remove the limits of demo-fast')
    await press('Remove')
    await shows('Limits of demo-fast removed')
    await hides('0 of 0')
    expect((await respond()).status).toBe(200)
    expect(faults).toEqual([])
    await page.close()
  })

  test('everybody sees their own limits and budgets, and no others', async () => {
    const { page, faults, open, shows, expectAccessible } = await openPage({ groups: ['users'] })
    await open('/limits', 'Limits and budgets')
    await shows('Your limits')
    await shows('of 1,000,000')
    expect(await page.$('.segments[aria-label="Whose limits"]')).toBeNull()
    await expectAccessible()
    expect(faults).toEqual([])
    await page.close()
  })
})
