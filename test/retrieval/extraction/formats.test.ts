import { describe, expect, test } from 'bun:test'
import { makeDocx, makePdf, makePptx, makeXlsx } from '#test/support/documents.ts'
import { extract, refusalOf } from './extraction-harness.ts'

describe('a PDF', () => {
  test('yields pages with an empty line between paragraphs', async () => {
    const pdf = makePdf([['First line', 'second line', '', '', 'New paragraph'], ['Page two (2)']])
    const { text, pages } = await extract(pdf, { name: 'a.pdf' })
    expect(text).toBe('First line\nsecond line\n\nNew paragraph\n\nPage two (2)')
    expect(pages).toEqual([0, text.indexOf('Page two')])
  })

  test('keeps page numbers when some pages have no text', async () => {
    const { text, pages } = await extract(makePdf([[], ['two'], [], ['four']]))
    expect(text).toBe('two\n\nfour')
    expect(pages).toEqual([0, 0, 3, 5])
  })

  test('without text fails with no_text, an encrypted one with encrypted', async () => {
    expect(await refusalOf(makePdf([[], []], { picture: true }))).toBe('no_text')
    expect(await refusalOf(makePdf([['secret']], { locked: true }))).toBe('encrypted')
  })

  test('that is truncated or damaged is refused', async () => {
    expect(await refusalOf(makePdf([['text']]).subarray(0, 60))).toBe('invalid_file')
    expect(await refusalOf('%PDF-1.7 and then nothing of the kind')).toBe('invalid_file')
  })

  test('is detected by its content, not by its name', async () => {
    const options = { name: 'a.html', mimeType: 'text/html' }
    expect((await extract(makePdf([['by its bytes']]), options)).text).toBe('by its bytes')
    expect((await extract('not one at all', { name: 'a.pdf' })).text).toBe('not one at all')
  })
})

describe('an office document', () => {
  test('docx becomes Markdown with headings and tables', async () => {
    const docx = makeDocx(['# Title', 'Žluťoučký kůň & <more>', '| a | b |', 'End'])
    const { text, pages } = await extract(docx, { name: 'a.docx' })
    expect(text).toBe('# Title\n\nŽluťoučký kůň & <more>\n\n| a | b |\n\nEnd')
    expect(pages).toBeNull()
  })

  test('pptx has one page per slide, with titles and notes', async () => {
    const pptx = makePptx([
      { lines: ['One', 'a', 'b'], notes: 'said aloud' },
      { lines: ['Two', 'c'] },
    ])
    const { text, pages } = await extract(pptx, { name: 'a.pptx' })
    expect(text).toBe('## One\na\nb\n\nsaid aloud\n\n## Two\nc')
    expect(pages).toEqual([0, text.indexOf('## Two')])
  })

  test('xlsx has one table per sheet, with displayed numbers, dates and texts', async () => {
    const xlsx = makeXlsx({
      Účty: [
        ['Name', 'Amount', 'Paid', 'When'],
        ['Řehoř', 12.5, true, new Date('2026-03-04T00:00:00Z')],
        ['two\nlines', -3, false, new Date('2026-03-04T18:30:00Z')],
      ],
      Empty: [],
      Last: [['x']],
    })
    expect((await extract(xlsx, { name: 'a.xlsx' })).text).toBe(
      [
        '## Účty',
        '',
        '| Name | Amount | Paid | When |',
        '| Řehoř | 12.5 | TRUE | 2026-03-04 |',
        '| two lines | -3 | FALSE | 2026-03-04 18:30:00 |',
        '',
        '## Last',
        '',
        '| x |',
      ].join('\n'),
    )
  })

  test('with a password is refused', async () => {
    const container = Buffer.alloc(4_096)
    container.set([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1])
    expect(await refusalOf(container, { name: 'old.doc' })).toBe('unsupported_file')
    container.write('EncryptedPackage', 1_024, 'utf16le')
    expect(await refusalOf(container, { name: 'a.docx' })).toBe('encrypted')
  })
})

describe('a text file', () => {
  test('is unchanged in any plain text format', async () => {
    const code = 'export function f(a) {\n  return a < 1 && "ž"\n}'
    expect((await extract(code, { name: 'a.ts' })).text).toBe(code)
    expect((await extract('a;b\r\n1;2\r\n', { name: 'a.csv' })).text).toBe('a;b\n1;2')
    expect((await extract('{"a": [1]}', { name: 'a.json' })).text).toBe('{"a": [1]}')
    expect((await extract('# T\n\n- a\n', { name: 'a.md' })).text).toBe('# T\n\n- a')
    expect(
      (await extract('BM is how a picture may startReindex', { name: 'a.txt' })).text,
    ).toContain('BM')
  })

  test('in HTML yields its visible text', async () => {
    const html = `<!doctype html><html><head><title>The paper</title><style>p{}</style></head><body>
      <h2>News</h2><script>alert("never")</script><noscript>never</noscript>
      <p>See <a href="https://example.com/a">this</a>, <a href="#top">that</a>
      &amp; a_b <img alt="a picture" src="data:image/png;base64,AAAA"></p>
      <table><thead><tr><th>k</th><th>v</th></tr></thead><tr><td>1</td><td>2</td></tr></table>
      <svg><text>never</text></svg></body></html>`
    const shown = [
      'The paper',
      '## News',
      'See [this](https://example.com/a), that & a_b a picture',
      '| k | v |\n| 1 | 2 |',
    ].join('\n\n')
    expect((await extract(html, { name: 'a.html' })).text).toBe(shown)
    expect((await extract(html, { mimeType: 'text/html; charset=utf-8' })).text).toBe(shown)
    expect((await extract(html)).text).toBe(shown)
    // The extension takes precedence: the source is indexed.
    expect((await extract(html, { name: 'a.txt', mimeType: 'text/html' })).text).toContain('alert')
  })

  test('may be UTF-16 with a byte order mark, or HTML with a declared encoding', async () => {
    const utf16 = Buffer.from('\ufeffžluťoučký\n', 'utf16le')
    expect((await extract(utf16)).text).toBe('žluťoučký')
    expect((await extract(Buffer.from(utf16).swap16())).text).toBe('žluťoučký')
    const old = Buffer.from('<meta charset="windows-1250"><p>\xe1\xe8', 'latin1')
    expect((await extract(old, { name: 'a.htm' })).text).toBe('áč')
  })

  test('with few invalid bytes is read, with many it is refused', async () => {
    const few = Buffer.concat([Buffer.from('mostly good text with one '), Buffer.from([0xff])])
    expect((await extract(few)).text).toBe('mostly good text with one \ufffd')
    const many = Buffer.from('\x01\x02\x03\xe4 \x05\xe6\xe7', 'latin1')
    expect(await refusalOf(many, { name: 'a.txt' })).toBe('unsupported_file')
  })

  test('is normalized and has no characters that the database refuses', async () => {
    const { text } = await extract('some a\u0000b\u0007 and e\u0301 \ufeffc  \n\n\n\nd')
    expect(text).toBe('some ab and é c\n\nd')
  })

  test('without letters and digits counts as without text', async () => {
    expect(await refusalOf('')).toBe('no_text')
    expect(await refusalOf(' \n\t')).toBe('no_text')
    expect(await refusalOf('<p> </p>', { name: 'a.html' })).toBe('no_text')
    expect(await refusalOf(makeDocx([]))).toBe('no_text')
  })
})

test('other formats are refused, regardless of the name', async () => {
  const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
  expect(await refusalOf(png, { name: 'a.txt', mimeType: 'text/plain' })).toBe('unsupported_file')
  const noise = crypto.getRandomValues(new Uint8Array(10_000)).fill(0x7f, 0, 8)
  expect(await refusalOf(noise, { name: 'a.docx' })).toBe('unsupported_file')
  expect(await refusalOf('<svg xmlns="…"><text>a</text></svg>', { name: 'a.svg' })).toBe(
    'unsupported_file',
  )
})
