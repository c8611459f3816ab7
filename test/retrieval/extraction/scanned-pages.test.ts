import { describe, expect, test } from 'bun:test'
import { makePdf } from '#test/support/documents.ts'
import { extract, extractionWith } from './extraction-harness.ts'

/** A PDF with a printed and a scanned page, written by bench/documents/make.py. */
const scan = await Bun.file('test/fixtures/documents/scan.pdf').bytes()
const printed = 'Printed page'
const scanned = 'The tide at Brest turns at noon.'
const withoutOcr = extractionWith({ ocrPagesMax: 0 })

describe('pictures of pages', () => {
  test('are made of pages without text, for models that see', async () => {
    const options = { extraction: withoutOcr, pageImages: true }
    const { text, images, warnings } = await extract(scan, options)
    expect(text).toBe(printed)
    expect(images.map(({ page }) => page)).toEqual([2])
    const metadata = await new Bun.Image(Buffer.from(images[0]?.content ?? [])).metadata()
    expect(metadata).toMatchObject({ format: 'jpeg', width: 1_109, height: 1_568 })
    expect(warnings).toEqual([{ code: 'pages_without_text', message: '1 page has no text (2).' }])
  })

  test('are limited in number and size, whatever the size of a page', async () => {
    const pdf = Buffer.from(makePdf(Array(23).fill([]), { picture: true })).toString('latin1')
    const huge = Buffer.from(pdf.replaceAll('[0 0 612 792]', '[0 0 9e6 792]'), 'latin1')
    const { text, images } = await extract(huge, { extraction: withoutOcr, pageImages: true })
    expect(text).toBe('')
    expect(images).toHaveLength(20)
    const metadata = await new Bun.Image(Buffer.from(images[0]?.content ?? [])).metadata()
    expect(metadata.width).toBeLessThanOrEqual(1_568)
  })

  test('are not made without a demand', async () => {
    expect((await extract(scan, { extraction: withoutOcr })).images).toEqual([])
  })
})

describe.skipIf(Bun.which('tesseract') === null)('with Tesseract', () => {
  test('the text of scanned pages is recognized, and marked as such', async () => {
    const { text, pages, warnings } = await extract(scan)
    expect(text).toBe(`${printed}\n\n${scanned}`)
    expect(pages).toEqual([0, printed.length + 2])
    expect(warnings).toEqual([
      {
        code: 'pages_recognized',
        message: 'The text of 1 page was recognized from an image and may have errors (2).',
      },
    ])
  })

  test('a missing language leaves the page without text', async () => {
    const { text, warnings } = await extract(scan, {
      extraction: extractionWith({ ocrLanguages: 'nowhere' }),
    })
    expect(text).toBe(printed)
    expect(warnings).toMatchObject([{ code: 'pages_without_text' }])
  })

  test('many pages stay within the memory of the process', async () => {
    const pages = [['text'], ...Array.from({ length: 25 }, () => [])]
    const [warning] = (await extract(makePdf(pages))).warnings
    expect(warning?.message).toStartWith('25 pages have no text')
  })

  test('a limit of 0 pages switches it off', async () => {
    const { text } = await extract(scan, { extraction: withoutOcr })
    expect(text).toBe(printed)
  })
})
