import { describe, expect, test } from 'bun:test'
import { strToU8, unzipSync, zipSync } from 'fflate'
import { UnreadableFile } from '#retrieval/extraction/unreadable.ts'
import { makeDocx, makePdf, makePptx, makeXlsx } from '#test/support/documents.ts'
import { extract, extractionWith } from './extraction-harness.ts'

/** What the text of a file lacks is said, not dropped. */

/** Without recognition of scanned pages, which takes seconds. */
const extraction = extractionWith({ ocrPagesMax: 0 })
const warningsOf = async (content: Uint8Array | string, name = 'file') =>
  (await extract(content, { name, extraction })).warnings

const withPart = (document: Uint8Array, ...paths: readonly string[]) =>
  zipSync({
    ...unzipSync(document),
    ...Object.fromEntries(paths.map((path) => [path, strToU8('x')])),
  })

test('a complete text has no warnings', async () => {
  expect(await warningsOf('plain')).toEqual([])
  expect(await warningsOf(makePdf([['page']]))).toEqual([])
  expect(await warningsOf(makeDocx(['words']))).toEqual([])
})

describe('pages of a PDF without text', () => {
  test('are numbered', async () => {
    expect(await warningsOf(makePdf([['one'], [], ['three'], []]))).toEqual([
      { code: 'pages_without_text', message: '2 pages have no text (2, 4).' },
    ])
  })

  test('are numbered in the error of a file without any text', async () => {
    const reading = extract(makePdf([[], []], { picture: true }), { extraction })
    const error = await reading.catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(UnreadableFile)
    expect(error).toMatchObject({
      code: 'no_text',
      warnings: [{ code: 'pages_without_text', message: '2 pages have no text (1, 2).' }],
    })
  })

  test('are counted when they are many', async () => {
    const pages = [['text'], ...Array.from({ length: 30 }, () => [])]
    const [warning] = await warningsOf(makePdf(pages))
    expect(warning?.message).toMatch(/^30 pages have no text \(2, 3, .*, 21 …\)\.$/)
  })
})

test('images and embedded files of office documents are counted', async () => {
  const images = (count: number) => ({
    code: 'images_skipped',
    message: count === 1 ? '1 image was not read.' : `${count} images were not read.`,
  })
  const docx = withPart(makeDocx(['a']), 'word/media/a.png', 'word/media/b.emf')
  expect(await warningsOf(docx)).toEqual([images(2)])
  const pptx = withPart(makePptx([{ lines: ['a'] }]), 'ppt/media/a.png', 'ppt/embeddings/b.bin')
  expect(await warningsOf(pptx)).toEqual([
    images(1),
    { code: 'parts_skipped', message: '1 part was not read (b.bin).' },
  ])
  expect(await warningsOf('<p>text<img src="a.png"></p>', 'a.html')).toEqual([images(1)])
  expect(await warningsOf('{\\rtf1 text{\\pict 00}}', 'a.rtf')).toEqual([images(1)])
})

test('rows of a sheet after the limit are counted, the others are read', async () => {
  const rows = Array.from({ length: 200_003 }, (_, at) => [at])
  const { text, warnings } = await extract(makeXlsx({ Long: rows }))
  expect(text).toEndWith('| 199999 |')
  expect(warnings).toEqual([
    {
      code: 'rows_skipped',
      message: '3 rows after the limit of all sheets were not read (Long).',
    },
  ])
})

test('characters that cannot be decoded are counted', async () => {
  const damaged = Buffer.concat([Buffer.from('Příliš žluťoučký kůň úpěl '), Buffer.from([0xff])])
  expect(await warningsOf(damaged, 'a.txt')).toEqual([
    { code: 'undecodable', message: '1 character could not be decoded.' },
  ])
})
