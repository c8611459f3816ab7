import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isBrowserMissing } from '#test/support/browser.ts'
import { type ConsoleVisit, useConsole } from '#test/support/console.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-uploads-'))
afterAll(() => rmSync(folder, { recursive: true }))

function fileNamed(name: string, content: string | Uint8Array): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

const picker = '.page input[type=file]'

/** Everything that a form sends for this file is larger than one part. */
const twoPartsBytes = 9 * 1024 * 1024

/** Keeps every value of a progress bar that the page shows from now on. */
const noteProgress = `{
  window.progress = []
  new MutationObserver(() => {
    for (const bar of document.querySelectorAll('.page [role=progressbar]')) {
      progress.push(Number(bar.ariaValueNow))
    }
  }).observe(document.body, { subtree: true, childList: true, attributes: true })
}`

/** Tells an element what a browser tells it when files are dragged over it and dropped. */
async function drop({ page }: ConsoleVisit, onto: string, texts: Readonly<Record<string, string>>) {
  await page.waitForSelector(onto)
  await page.evaluate(`{
    window.dragged = new DataTransfer()
    for (const [name, text] of Object.entries(${JSON.stringify(texts)})) {
      dragged.items.add(new File([text], name, { type: 'text/plain' }))
    }
    window.report = (type) => document.querySelector('${onto}').dispatchEvent(
      new DragEvent(type, { dataTransfer: dragged, bubbles: true, cancelable: true }))
    report('dragenter')
    report('dragover')
  }`)
  await page.waitForSelector(`${onto}[data-over=true]`)
  await page.evaluate(`report('drop')`)
  await page.waitForSelector(`${onto}[data-over=false]`)
}

/** The second part of an upload goes to an address that refuses it; counts the accepted parts. */
const refuseSecondPart = `{
  window.parts = []
  const { open } = XMLHttpRequest.prototype
  XMLHttpRequest.prototype.open = function (method, url) {
    if (!url.endsWith('/parts')) return open.call(this, method, url)
    const isRefused = parts.length === 1 && !window.wasRefused
    if (isRefused) window.wasRefused = true
    this.addEventListener('load', () => { if (this.status === 200) parts.push(url) })
    return open.call(this, method, isRefused ? url.replace('parts', 'nowhere') : url)
  }
}`

describe.skipIf(isBrowserMissing)('files and collections in a browser (needs chromium)', () => {
  const { site, open: openPage } = useConsole()

  test('a file is uploaded, moved, shared, renamed, deleted and restored', async () => {
    const visited = await openPage()
    const { page, faults, open, press, fill, shows, hides, expectAccessible } = visited
    await open('/files', 'Files')
    await shows('Nothing here yet')
    await press('New folder')
    await fill('Name', 'Reports')
    await page.keyboard.press('Enter')
    await shows('Folder Reports created')
    await visited.upload(
      picker,
      fileNamed('handbook.txt', 'Holiday may be carried over until March.'),
    )
    await shows('1 of 1 files uploaded')
    await shows('In no collection')
    await expectAccessible()

    await press('Move handbook.txt')
    await press('Reports')
    await expectAccessible()
    await press('Move here')
    await hides('In no collection')
    await page.click('.node-name a')
    await shows('In no collection')
    await press('Share handbook.txt')
    await press('Everyone')
    await shows('Shared with Everyone')
    await expectAccessible()
    await press('Close')
    await press('Rename handbook.txt')
    await fill('New name', 'guide.txt')
    await page.keyboard.press('Enter')
    await shows('Renamed to guide.txt')

    await press('Delete guide.txt')
    await press('Delete')
    await shows('guide.txt deleted')
    await page.click('.tree a[href*="view=trash"]')
    await press('Restore guide.txt')
    await shows('guide.txt restored')
    await shows('The trash is empty')
    await page.click('.tree a[href$="/files"]')
    await fill('Search names', 'guide')
    await shows('guide.txt')
    expect(faults).toEqual([])
    await page.close()
  })

  test('dropped files are uploaded with progress, and join a collection until they are found', async () => {
    const headers = {
      authorization: `Bearer ${await site.gateway.token(['admins'])}`,
      'content-type': 'application/json',
    }
    const collections = (path: string, method: string, body?: string) =>
      site.gateway.request(`/v1/collections${path}`, {
        ...{ method, headers },
        ...(body === undefined ? {} : { body }),
      })
    const created = await collections('', 'POST', JSON.stringify({ name: 'tides' }))
    const { id } = (await created.json()) as { id: string }
    const visited = await openPage()
    const { page, faults, open, press, choose, shows } = visited
    await open('/files', 'Files')
    await page.evaluate(noteProgress)
    // As slow as the line of a phone: the progress has values between.
    await page.emulateNetworkConditions({ upload: 400_000, download: 10_000_000, latency: 0 })
    await drop(visited, '.explorer .drop', {
      'ebb.txt': 'The ebb begins at noon. '.repeat(10_000),
      'flood.txt': 'The flood begins at six.',
    })
    await shows('2 of 2 files uploaded')
    await page.emulateNetworkConditions(null)
    const progress = (await page.evaluate('window.progress')) as number[]
    expect(progress.some((percent) => percent > 0 && percent < 100)).toBe(true)
    expect(progress.at(-1)).toBe(100)

    await shows('In no collection')
    for (const name of ['flood.txt', 'ebb.txt']) {
      await (await page.waitForSelector(`[aria-label="Select ${name}"]`))?.focus()
      await page.keyboard.press('Space')
    }
    await press('Add to a collection')
    await choose('Add to a collection', id)
    await press('Add')
    await shows('Added to tides')
    await page.waitForFunction(`document.body.innerText.split('RAG Available').length === 4`)
    await collections(`/${id}`, 'DELETE')
    expect(faults).toEqual([])
    await page.close()
  })

  test('a large upload that fails says why, and a retry sends only the rest', async () => {
    const visited = await openPage()
    const { page, open, press, shows } = visited
    await open('/files', 'Files')
    await page.evaluate(refuseSecondPart)
    await visited.upload(picker, fileNamed('large.bin', new Uint8Array(twoPartsBytes)))
    await shows('No such endpoint')
    await press('Upload large.bin again')
    await shows('1 of 1 files uploaded')
    expect(await page.evaluate('parts.length')).toBe(2)
    await page.close()
  })

  test('after a reload of the page an upload continues with its missing part', async () => {
    const visited = await openPage()
    const { page, open, shows, hides, expectAccessible } = visited
    await open('/files', 'Files')
    await page.evaluate(refuseSecondPart)
    const path = fileNamed('interrupted.bin', new Uint8Array(twoPartsBytes))
    await visited.upload(picker, path)
    await shows('No such endpoint')
    await page.reload()
    await shows('Choose these files again')
    await expectAccessible()
    await page.evaluate(refuseSecondPart)
    await page.evaluate('window.wasRefused = true')
    await visited.upload(picker, path)
    await shows('1 of 1 files uploaded')
    await hides('Choose these files again')
    expect(await page.evaluate('parts.length')).toBe(1)
    await page.close()
  })

  test('a document of a collection is found, with the reasons, also after a reindex', async () => {
    const visited = await openPage()
    const { page, faults, open, press, fill, choose, shows, expectAccessible } = visited
    await open('/collections', 'Collections')
    await shows('No collections yet')
    await press('Create a collection')
    await fill('Name', 'rules')
    await expectAccessible()
    await page.keyboard.press('Enter')
    await shows('No documents yet')
    await drop(visited, '.page .drop', { 'rules.txt': 'Travel costs are paid within two weeks.' })
    await shows('RAG Available')
    await expectAccessible()

    await press('Search')
    await fill('Question', 'Who pays travel costs?')
    await page.keyboard.press('Enter')
    await page.waitForFunction(`document.querySelector('mark')?.innerText === 'Travel'`)
    await shows('Keywords')
    await shows('Meaning')
    await expectAccessible()

    await press('Index')
    await shows('Never reindexed')
    await press('Reindex')
    await fill('Tokens per passage', '300')
    await press('Estimate')
    await shows('1 files, about')
    await press('Reindex')
    await shows('The reindex has started')
    await shows('Completed')
    await shows('up to 300 tokens')
    await expectAccessible()

    await press('Members')
    await press('Everyone')
    await shows('Shared with Everyone')

    // An answer names the document that it cites.
    await open('/playground', 'Playground')
    const option = `[...document.querySelectorAll('option')].find((one) => one.innerText === 'rules')`
    await page.waitForFunction(option)
    await choose('Search a collection', String(await page.evaluate(`${option}.value`)))
    await fill('Message', 'Who pays travel costs?')
    await page.keyboard.press('Enter')
    await page.waitForFunction(
      `document.querySelector('.answer .sources')?.innerText.includes('rules.txt')`,
    )
    await expectAccessible()
    await open('/collections', 'Collections')
    await press('rules')
    await press('Delete')
    await press('Delete')
    await shows('No collections yet')
    expect(faults).toEqual([])
    await page.close()
  })
})
