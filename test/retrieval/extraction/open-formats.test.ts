import { describe, expect, test } from 'bun:test'
import { strToU8, unzipSync, zipSync } from 'fflate'
import { extract, refusalOf } from './extraction-harness.ts'

/** OpenDocument, EPUB and RTF, written by bench/documents/make.py with LibreOffice, odfpy and EbookLib. */

const czech = 'Příliš žluťoučký kůň úpěl ďábelské ódy. Zaměstnanci mají nárok na dovolenou.'
const table = '| Item | Price |\n| Desk | 1 200 Kč |'

const read = (name: string) => Bun.file(`test/fixtures/documents/${name}`).bytes()

async function textOf(name: string): Promise<string> {
  return (await extract(await read(name), { name })).text
}

/** The document with other parts. */
async function withParts(name: string, parts: Record<string, (xml: string) => string>) {
  const files = unzipSync(await read(name))
  for (const [path, change] of Object.entries(parts)) {
    files[path] = strToU8(change(Buffer.from(files[path] ?? []).toString()))
  }
  return zipSync(files)
}

describe('OpenDocument', () => {
  test('text has headings, tables, comments, headers and footers', async () => {
    const parts = ['Contract 42', '# Terms', czech, table, 'Check the sum', 'Confidential']
    expect(await textOf('contract.odt')).toBe(parts.join('\n\n'))
  })

  test('text of another writer has lists and tables', async () => {
    const russian = 'Сотрудники имеют право на отпуск; продолжительность двадцать восемь дней.'
    const parts = [
      '# Minutes',
      russian,
      '- first point',
      '- second point',
      '| Yes | No |\n| 7 | 2 |',
    ]
    expect(await textOf('minutes.odt')).toBe(parts.join('\n\n'))
  })

  test('sheets are tables', async () => {
    expect(await textOf('staff.ods')).toBe(
      '## Staff\n\n| Name | Days |\n| Řehoř | 12.5 |\n| 山田 | 20 |',
    )
  })

  test('slides are pages with titles and notes', async () => {
    const { text, pages } = await extract(await read('results.odp'))
    expect(text).toBe(`## Results\n- ${czech}\nSaid aloud`)
    expect(pages).toEqual([0])
  })

  test('deleted text of tracked changes is left out, notes follow their reference', async () => {
    const odt = await withParts('minutes.odt', {
      'content.xml': (xml) =>
        xml
          .replace(
            '<office:text>',
            '<office:text><text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>',
          )
          .replace(
            /(двадцать восемь)/,
            '$1<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>по закону</text:p></text:note-body></text:note>',
          ),
    })
    const { text } = await extract(odt)
    expect(text).toContain('двадцать восемь (по закону) дней.')
    expect(text).not.toContain('deleted')
  })

  test('repeated cells and rows are limited', async () => {
    const many = 'table:number-rows-repeated="1000000"'
    const ods = await withParts('staff.ods', {
      'content.xml': (xml) => xml.replace(/<table:table-row /, `<table:table-row ${many} `),
    })
    const { text, warnings } = await extract(ods)
    expect(text.length).toBeLessThan(10_000)
    expect(warnings).toContainEqual({
      code: 'rows_skipped',
      message: '999,936 rows after the limit of all sheets were not read (Staff).',
    })
  })

  test('with a password is refused', async () => {
    const locked = await withParts('contract.odt', {
      'META-INF/manifest.xml': (xml) =>
        xml.replace('</manifest:manifest>', '<manifest:encryption-data/></manifest:manifest>'),
    })
    expect(await refusalOf(locked)).toBe('encrypted')
  })
})

describe('EPUB', () => {
  test('has its chapters in reading order', async () => {
    const japanese = '有給休暇は年間二十日で、翌年三月末まで繰り越すことができます。'
    expect(await textOf('novel.epub')).toBe(`# Chapter 1\n\n${czech}\n\n# Chapter 2\n\n${japanese}`)
  })

  test('with encrypted chapters is refused, with obfuscated fonts it is read', async () => {
    const encrypting = (path: string) => () =>
      `<encryption xmlns:e="e"><e:CipherReference URI="${path}"/></encryption>`
    const locked = { 'META-INF/encryption.xml': encrypting('EPUB/text/chapter1.xhtml') }
    expect(await refusalOf(await withParts('novel.epub', locked))).toBe('encrypted')
    const font = { 'META-INF/encryption.xml': encrypting('EPUB/font.otf') }
    expect((await extract(await withParts('novel.epub', font))).text).toContain('Chapter 1')
  })
})

describe('RTF', () => {
  test('has headers, comments and tables', async () => {
    const parts = ['Contract 42\nConfidential\nTerms (Check the sum)', czech]
    expect(await textOf('contract.rtf')).toBe(`${parts.join('\n')}\n\n${table}`)
  })

  test.each([
    ["{\\rtf1\\ansi\\ansicpg1250 P\\'f8\\'edli\\'9a}", 'Příliš'],
    ["{\\rtf1{\\fonttbl{\\f0\\fcharset128 MS;}}\\f0\\'97\\'4c\\'8b\\'8b}", '有給'],
    ['{\\rtf1\\uc2 a\\u24180 ??b\\u-10179?\\u-8704 ??}', 'a年b😀'],
    [
      '{\\rtf1 one\\par two\\line three\\tab four\\~five \\{x\\}}',
      'one\ntwo\nthree\tfour\u00a0five {x}',
    ],
    ['{\\rtf1 seen{\\v hidden}{\\*\\unknown gone}{\\pict 0102ff} end}', 'seen end'],
    ['{\\rtf1 a\\bin5 {{{{{b}', 'ab'],
    ['{\\rtf1\\ansicpg99999 plain}', 'plain'],
  ])('%s is read', async (rtf, text) => {
    expect((await extract(rtf, { name: 'a.rtf' })).text).toBe(text)
  })
})
