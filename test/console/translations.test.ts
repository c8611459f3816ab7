import { describe, expect, test } from 'bun:test'
import { isBrowserMissing } from '#test/support/browser.ts'
import { useConsole } from '#test/support/console.ts'

describe.skipIf(isBrowserMissing)('translations in a browser (needs chromium)', () => {
  const { site, open: openPage } = useConsole()

  const overrides = async () => {
    const headers = { authorization: `Bearer ${await site.gateway.token(['admins'])}` }
    return (await site.gateway.request('/v1/translations', { headers })).json()
  }

  test('a text is changed, shown before it is saved, exported, and reset', async () => {
    const { page, faults, open, press, fill, check, shows, hides, expectAccessible } =
      await openPage()
    await open('/translations', 'Translations')
    await press('Changed')
    await shows('No texts are changed')
    await press('All')
    await fill('Search keys and texts', 'files.title')
    await check('Preview here')
    await fill('Text of files.title', 'Documents {count}')
    await shows('Differs in {count}')
    await expectAccessible()
    await fill('Text of files.title', 'Paperwork')
    // The navigation, before anything is saved.
    await page.waitForFunction(
      `document.querySelector('.rail nav').innerText.includes('Paperwork')`,
    )
    expect(await overrides()).toEqual({})
    await press('Save')
    await shows('Texts saved')
    await press('Changed')
    await shows('1 of 1 texts')
    expect(await overrides()).toEqual({ en: { console: { 'files.title': 'Paperwork' } } })
    await page.evaluate(`{
      const create = URL.createObjectURL
      URL.createObjectURL = (file) => {
        file.text().then((saved) => { window.saved = saved })
        return create.call(URL, file)
      }
    }`)
    await press('Export changes')
    await page.waitForFunction(`window.saved?.includes('"files.title": "Paperwork"')`)
    await press('Reset the language')
    await press('Reset the language')
    await shows('No texts are changed')
    await page.waitForFunction(
      `!document.querySelector('.rail nav').innerText.includes('Paperwork')`,
    )
    await hides('1 of 1 texts')
    expect(await overrides()).toEqual({})
    expect(faults).toEqual([])
    await page.close()
  })

  test('another language shows what is missing, and takes a file', async () => {
    const { page, faults, open, press, fill, shows } = await openPage()
    await open('/translations', 'Translations')
    await press('Add a language')
    await fill('Language tag', 'fr')
    await shows('French (fr)')
    await page.keyboard.press('Enter')
    await press('Missing')
    await shows('not translated')
    const file = JSON.stringify({ fr: { console: { 'files.title': 'Fichiers' } } })
    await page.evaluate(`(() => {
      const files = new DataTransfer()
      files.items.add(new File([${JSON.stringify(file)}], 'fr.json', { type: 'application/json' }))
      const input = document.querySelector('input[type=file]')
      input.files = files.files
      input.dispatchEvent(new Event('change', { bubbles: true }))
    })()`)
    await shows('Imported, not saved yet: 1 new texts')
    await press('Save')
    await shows('Texts saved')
    expect(await overrides()).toEqual({ fr: { console: { 'files.title': 'Fichiers' } } })
    await press('FR, français')
    const isFrench = `document.documentElement.lang === 'fr' &&
      document.querySelector('.rail nav')?.innerText.includes('Fichiers')`
    await page.waitForFunction(isFrench)
    await page.reload()
    await page.waitForFunction(isFrench)
    expect(faults).toEqual([])
    await page.close()
  })
})
