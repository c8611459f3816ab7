import { describe, expect, test } from 'bun:test'
import { isBrowserMissing } from '#test/support/browser.ts'
import { useConsole } from '#test/support/console.ts'

describe.skipIf(isBrowserMissing)('branding in a browser (needs chromium)', () => {
  const { site, open: openPage } = useConsole()

  const theme = async () => {
    const headers = { authorization: `Bearer ${await site.gateway.token(['admins'])}` }
    const response = await site.gateway.request('/v1/branding/theme', { headers })
    return (await response.json()) as { logo_url: string; colors: { light: { primary: string } } }
  }

  test('a colour without contrast is named, replaced by one that passes, and saved', async () => {
    const { page, faults, open, press, fill, shows, expectAccessible } = await openPage()
    await open('/branding', 'Branding')
    await shows('All 20 pairs can be read.')
    await expectAccessible()
    const preview = `getComputedStyle(document.querySelector('.brand-preview .button')).backgroundColor`
    await fill('Accent, Light', '#7fc4ff')
    await page.waitForFunction(`${preview} === 'rgb(127, 196, 255)'`)
    await shows('Pairs that cannot be read well: 3')
    await shows('Light: Text on accent on Accent')
    await page.evaluate(`[...document.querySelectorAll('.contrasts button')].find((one) =>
      one.getAttribute('aria-label').endsWith('Accent on Surface')).click()`)
    await shows('Pairs that cannot be read well: 1')
    await fill('Accent, Light', '#0b6e4f')
    await shows('All 20 pairs can be read.')
    await fill('Product name', 'Weir')
    await press('Save')
    await shows('Theme saved')
    await page.waitForFunction(`document.querySelector('.rail .brand').innerText === 'Weir'`)
    expect((await theme()).colors.light.primary).toBe('#0b6e4f')
    await press('Restore the default')
    await press('Restore the default')
    await shows('Default theme restored')
    expect((await theme()).colors.light.primary).toBe('#2557d6')
    expect(faults).toEqual([])
    await page.close()
  })

  test('a logo is uploaded without its scripts, and removed', async () => {
    const { page, faults, open, press, fill, shows } = await openPage()
    const before = (await theme()).logo_url
    await open('/branding', 'Branding')
    await fill('Product name', 'Draft')
    const input = await page.waitForSelector('input[type=file]')
    await page.evaluate(`(() => {
      const svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><script>alert(1)</script><rect width="1" height="1"/></svg>'
      const files = new DataTransfer()
      files.items.add(new File([svg], 'logo.svg', { type: 'image/svg+xml' }))
      const input = document.querySelector('input[type=file]')
      input.files = files.files
      input.dispatchEvent(new Event('change', { bubbles: true }))
    })()`)
    expect(input).not.toBeNull()
    await shows('Logo saved')
    await shows('Removed from the SVG for safety')
    const uploaded = (await theme()).logo_url
    expect(uploaded).not.toBe(before)
    await page.waitForFunction(
      `document.querySelector('.rail .brand img').getAttribute('src') === ${JSON.stringify(uploaded)}`,
    )
    await shows('Removed from the SVG for safety')
    const drafted = `[...document.querySelectorAll('.branding input')].map(({ value }) => value)`
    expect(await page.evaluate(drafted)).toContain('Draft')
    await press('Remove the logo')
    await press('Remove the logo')
    await shows('Logo removed')
    expect((await theme()).logo_url).toBe(before)
    expect(faults).toEqual([])
    await page.close()
  })
})
