import { describe, expect, test } from 'bun:test'
import { isBrowserMissing } from '#test/support/browser.ts'
import { type ConsoleVisit, useConsole } from '#test/support/console.ts'

describe.skipIf(isBrowserMissing)('keys and people in a browser (needs chromium)', () => {
  const { site, open: openPage } = useConsole()

  const readSecret = async ({ page }: ConsoleVisit) => {
    await page.waitForSelector('dialog .code code')
    return String(await page.evaluate(`document.querySelector('dialog .code code').textContent`))
  }
  const statusWith = async (key: string, path: string) =>
    (await site.gateway.request(path, { headers: { 'x-api-key': key } })).status

  test('a key is created with a scope, replaced and revoked', async () => {
    const visited = await openPage()
    const { page, faults, open, press, fill, check, shows, hides, expectAccessible } = visited
    await open('/keys', 'API keys')
    await shows('No keys yet')
    await press('Create a key')
    await fill('Name', 'build server')
    await check('Models')
    await expectAccessible()
    await page.keyboard.press('Enter')
    const secret = await readSecret(visited)
    expect(await statusWith(secret, '/v1/models')).toBe(200)
    expect(await statusWith(secret, '/v1/files')).toBe(403)
    await press('Done')
    await hides('It is never shown again.')
    await shows('build server')
    await expectAccessible()

    await press('Replace the secret of build server')
    await press('Replace')
    const replaced = await readSecret(visited)
    expect(replaced).not.toBe(secret)
    expect(await statusWith(replaced, '/v1/models')).toBe(200)
    await press('Done')

    await press('Revoke build server')
    await shows('Programs that use it are refused within a second.')
    await press('Revoke')
    await shows('build server revoked')
    await shows('No keys yet')
    expect(await statusWith(replaced, '/v1/models')).toBe(401)
    expect(faults).toEqual([])
    await page.close()
  })

  test('a group is created, gets a member, and is deleted', async () => {
    await site.gateway.request('/v1/me', {
      headers: { authorization: `Bearer ${await site.gateway.token(['users'], 'grace')}` },
    })
    const { page, faults, open, press, fill, shows, hides, expectAccessible } = await openPage()
    await open('/groups', 'Groups')
    await press('Create a group')
    await fill('Group', 'lab')
    await fill('Description', 'Those with the good models')
    await expectAccessible()
    await page.keyboard.press('Enter')
    await shows('lab saved')
    await press('Members of lab')
    await fill('Add somebody', 'grac')
    await press('grace')
    await shows('grace is now in lab')
    await shows('hand')
    await expectAccessible()
    await press('Close')
    await page.waitForFunction(`[...document.querySelectorAll('tr')].some((row) =>
      row.cells[0].innerText.startsWith('lab') && row.cells[3].innerText === '1')`)
    await press('Delete lab')
    await shows('Its members (1) lose what only it granted.')
    await press('Delete')
    await shows('lab deleted')
    await hides('Those with the good models')
    expect(faults).toEqual([])
    await page.close()
  })

  test('a user is disabled and enabled again, and a service account gets a key', async () => {
    const request = async () =>
      (
        await site.gateway.request('/v1/me', {
          headers: { authorization: `Bearer ${await site.gateway.token(['users'], 'alan')}` },
        })
      ).status
    expect(await request()).toBe(200)
    const visited = await openPage()
    const { page, faults, open, press, fill, check, shows, expectAccessible } = visited
    await open('/users', 'Users')
    await fill('Search by name or subject', 'alan')
    await press('Manage alan')
    await press('Disable')
    await shows('Disable alan?')
    await press('Disable')
    await shows('alan is disabled')
    expect(await request()).not.toBe(200)
    await press('Enable')
    await shows('alan is enabled')
    expect(await request()).toBe(200)
    await expectAccessible()
    await press('Close')

    await press('Create a service account')
    await fill('Name of the account', 'nightly')
    await check('users')
    await press('Create')
    await shows('nightly created')
    await press('Create a key')
    await fill('Name', 'runner')
    await page.keyboard.press('Enter')
    expect(await statusWith(await readSecret(visited), '/v1/models')).toBe(200)
    expect(faults).toEqual([])
    await page.close()
  })
})
