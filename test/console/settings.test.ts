import { describe, expect, test } from 'bun:test'
import { isBrowserMissing } from '#test/support/browser.ts'
import { useConsole } from '#test/support/console.ts'

describe.skipIf(isBrowserMissing)('settings in a browser (needs chromium)', () => {
  const { site, open: openPage } = useConsole()

  const read = async () => {
    const headers = { authorization: `Bearer ${await site.gateway.token(['admins'])}` }
    return (await (await site.gateway.request('/v1/config', { headers })).json()) as {
      retrieval_k: number
      rerank_top_n: number | null
      files: { trash_seconds: number }
      models: { access: unknown }
      limits: { group: unknown }
    }
  }

  test('settings are changed in a form of the schema, reviewed, and rolled back', async () => {
    const { page, faults, open, press, fill, choose, shows, hides, expectAccessible } =
      await openPage()
    await open('/settings', 'Settings')
    await fill('Passages per question', '500')
    await shows('At most 50.')
    await fill('Passages per question', '7')
    await hides('At most 50.')
    // A unit, a list of objects, and a map of objects.
    await choose('Unit of Time in the trash', '3600')
    await fill('Time in the trash', '12')
    await page.click('[data-key="models.access"] .button')
    await fill('Models', 'demo-*')
    await page.click('[data-key="models.access"] .schema-entry .group .button')
    await fill('Groups 1', 'admins')
    await fill('New entry of “Limits by group”', 'staff')
    await page.click('[data-key="limits.group"] .schema-add .button')
    await page.type('[data-key="limits.group"] details[open] input', '30')
    await shows('Unsaved changes: 4')
    await expectAccessible()
    await press('Review and save')
    await shows('limits.group.staff.requests_per_minute')
    await shows('12 hours')
    await expectAccessible()
    await press('Save')
    await shows('Settings saved')
    expect(await read()).toMatchObject({
      retrieval_k: 7,
      files: { trash_seconds: 43_200 },
      models: { access: [{ models: 'demo-*', groups: ['admins'] }] },
      limits: { group: { staff: { requests_per_minute: 30 } } },
    })
    await expectAccessible()
    await press('Reset to 3 (default): Passages per question')
    await press('Review and save')
    await press('Save')
    await page.waitForSelector('[data-key="retrieval_k"] .tag:not(.accent)')
    expect(await read()).toMatchObject({ retrieval_k: 3 })

    await press('History')
    await shows('tester')
    await expectAccessible()
    await press('Remove all changes')
    await shows('limits.group.staff')
    await press('Roll back')
    await shows('Configuration rolled back')
    expect(await read()).toMatchObject({ models: { access: [] }, limits: { group: {} } })
    expect(faults).toEqual([])
    await page.close()
  })

  test('a change on top of an outdated one is refused, and the draft survives', async () => {
    const { page, open, press, fill, shows } = await openPage()
    await open('/settings', 'Settings')
    await fill('Passages per question', '8')
    const changed = await site.gateway.request('/v1/config', {
      method: 'PATCH',
      headers: {
        authorization: `Bearer ${await site.gateway.token(['admins'])}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ retrieval_k: 5 }),
    })
    expect(changed.status).toBe(200)
    await press('Review and save')
    await shows('Somebody else changed this in the meantime.')
    await press('Try again')
    await page.waitForFunction(`document.querySelector('dialog del')?.innerText === '5'`)
    await press('Save')
    await shows('Settings saved')
    expect((await read()).retrieval_k).toBe(8)
    await page.close()
  })

  test('the keys of the file say where they come from and what a change needs', async () => {
    const { page, faults, open, press, fill, check, shows, expectAccessible } = await openPage()
    await open('/settings', 'Settings')
    await press('File and environment')
    await check('Only what is set')
    await fill('Search keys', 'jwt.issuer')
    await shows('with a restart')
    await fill('Search keys', 'jwt.secret')
    await shows('Secret, not shown')
    await shows('with a reload')
    await expectAccessible()
    expect(faults).toEqual([])
    await page.close()
  })
})
