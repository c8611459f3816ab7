import { describe, expect, test } from 'bun:test'
import {
  assistant,
  itemsOf,
  refusalOfMessages,
  text,
  toolResult,
  toolUse,
  user,
} from './parsing.ts'

/** The parts of one user message. */
function partsOf(...blocks: unknown[]): unknown {
  const [item] = itemsOf(user(...blocks))
  return item?.type === 'message' ? item.parts : item
}

const refusalOf = (block: object) => refusalOfMessages(user(block))
const base64 = (mediaType: string, data: string) => ({
  type: 'base64',
  media_type: mediaType,
  data,
})
const image = (source: object) => ({ type: 'image', source })
const document = (source: object, fields: object = {}) => ({ type: 'document', source, ...fields })
const at = 'messages.0.content.0'

describe('an image', () => {
  test.each(['jpeg', 'png', 'gif', 'webp'])('can be base64 of %s', (kind) => {
    expect(partsOf(image(base64(`image/${kind}`, 'iVBORw0KGgo=')))).toEqual([
      { type: 'image', url: `data:image/${kind};base64,iVBORw0KGgo=`, detail: null },
    ])
  })

  test('can be a public URL', () => {
    const url = 'https://example.com/a.png?b=c'
    expect(partsOf(image({ type: 'url', url }))).toEqual([{ type: 'image', url, detail: null }])
  })

  test.each([
    'http://127.0.0.1/a.png',
    'http://localhost/a.png',
    'http://localhost.:8080/a.png',
    'https://api.localhost/a.png',
    'https://printer.local/a.png',
    'https://metadata.google.internal/a.png',
    'https://intranet/a.png',
    'https://10.0.0.1/a.png',
    'https://192.168.1.1/a.png',
    'https://169.254.169.254/latest/meta-data',
    'https://[::1]/a.png',
    'https://[::ffff:10.0.0.1]/a.png',
    'https://[fd00::1]/a.png',
    'https://2130706433/a.png',
    'https://0x7f.1/a.png',
    'https://0/a.png',
  ])('cannot be %s', (url) => {
    expect(refusalOf(image({ type: 'url', url }))).toBe(
      `${at}.source.url: leads to an address that is not public`,
    )
    expect(refusalOf(document({ type: 'url', url }))).toContain('not public')
  })

  test.each(['file:///etc/passwd', 'data:image/png;base64,AA==', 'ftp://example.com/a', 'a.png'])(
    'cannot be %s',
    (url) => {
      expect(refusalOf(image({ type: 'url', url }))).toBe(
        `${at}.source.url: must be a URL that begins with https:// or http://`,
      )
    },
  )

  test.each([
    [{}, `${at}.source.type: is required`],
    [{ type: 'ftp' }, `${at}.source.type: is "ftp", which is not supported in this block`],
    [
      { type: 'file', file_id: 'file_1' },
      `${at}.source.file_id: is "file_1", but no file has this id`,
    ],
    [{ type: 'base64' }, `${at}.source.media_type: is required`],
    [
      base64('image/bmp', 'AAAA'),
      `${at}.source.media_type: must be one of image/jpeg, image/png, image/gif, image/webp`,
    ],
    [base64('image/png', ''), `${at}.source.data: must be a non-empty string`],
    [
      base64('image/png', 'data:image/png;base64,AAAA'),
      `${at}.source.data: must be base64 without a prefix`,
    ],
  ])('from %j is refused: %s', (source, message) => {
    expect(refusalOf(image(source))).toBe(message)
  })

  test('is limited to ten megabytes', () => {
    const chars = (10_485_760 / 3) * 4
    expect(refusalOf(image(base64('image/png', 'A'.repeat(Math.ceil(chars) + 4))))).toMatch(
      /^messages\.0\.content\.0\.source\.data: image exceeds the maximum: \d+ bytes > 10485760$/,
    )
    expect(partsOf(image(base64('image/png', 'A'.repeat(Math.floor(chars)))))).toBeArrayOfSize(1)
  })

  test('is refused in assistant messages', () => {
    expect(refusalOfMessages(assistant(image(base64('image/png', 'AAAA'))))).toBe(
      `${at}: is image content, which is only allowed in user messages`,
    )
  })
})

describe('a document', () => {
  test('of text follows its title and context', () => {
    const source = { type: 'text', media_type: 'text/plain', data: 'The sky is red.' }
    expect(partsOf(document(source))).toEqual([text('The sky is red.')])
    expect(partsOf(document(source, { title: 'Skies', context: 'Of 1883.' }))).toEqual([
      text('Document: Skies\nContext: Of 1883.\n\nThe sky is red.'),
    ])
  })

  test('of blocks becomes these blocks', () => {
    const content = [text('Look:'), image(base64('image/png', 'AAAA'))]
    const parts = [
      text('Document: Skies\n\nLook:'),
      { type: 'image', url: 'data:image/png;base64,AAAA', detail: null },
    ]
    expect(partsOf(document({ type: 'content', content }, { title: 'Skies' }))).toEqual(parts)
    expect(partsOf(document({ type: 'content', content: 'Red.' }))).toEqual([text('Red.')])
    expect(refusalOf(document({ type: 'content', content: [{ type: 'x' }] }))).toStartWith(
      `${at}.source.content.0.type: is "x"`,
    )
  })

  test('of PDF is a file with a name', () => {
    const pdf = base64('application/pdf', 'JVBERi0xLjQ=')
    const file = { type: 'file', data: 'data:application/pdf;base64,JVBERi0xLjQ=', url: null }
    expect(partsOf(document(pdf))).toEqual([{ ...file, filename: 'document.pdf' }])
    expect(partsOf(document(pdf, { title: 'Skies', context: 'Of 1883.' }))).toEqual([
      text('Context: Of 1883.'),
      { ...file, filename: 'Skies.pdf' },
    ])
  })

  test('of another type is a file with its title', () => {
    const page = base64('text/html', 'AAAA')
    const file = { type: 'file', data: 'data:text/html;base64,AAAA', url: null }
    expect(partsOf(document(page))).toEqual([{ ...file, filename: 'document' }])
    expect(partsOf(document(page, { title: 'a.html' }))).toEqual([{ ...file, filename: 'a.html' }])
  })

  test('by URL is fetched by the upstream', () => {
    const url = 'https://example.com/a.pdf'
    expect(partsOf(document({ type: 'url', url }, { title: 'a.pdf' }))).toEqual([
      { type: 'file', data: null, url, filename: 'a.pdf' },
    ])
  })

  test('that was uploaded is a stored file', () => {
    const id = '018f0000-0000-7000-8000-000000000000'
    const path = `${at}.source.file_id`
    expect(partsOf(document({ type: 'file', file_id: id }))).toEqual([
      { type: 'file', data: null, url: null, filename: null, stored: { id, path } },
    ])
    expect(refusalOf(document({ type: 'file', file_id: 'x' }))).toStartWith(path)
  })
})

describe('other content', () => {
  test('a search result is text after its source', () => {
    const found = {
      type: 'search_result',
      source: 'https://a.example',
      title: 'Skies',
      content: [text('Red.'), text('Blue.')],
    }
    expect(partsOf(found)).toEqual([
      text('Source: https://a.example\nTitle: Skies\n\nRed.\n\nBlue.'),
    ])
  })

  test('is allowed in tool results', () => {
    const content = [
      { type: 'tool_reference', tool_name: 'dig' },
      { type: 'browser_state', url: 'https://a.example' },
      image(base64('image/png', 'AAAA')),
      document({ type: 'text', data: 'Red.' }),
    ]
    const items = itemsOf(assistant(toolUse('a')), user(toolResult('a', { content })))
    expect<unknown>(items[1]).toMatchObject({
      parts: [
        text('The tool dig can be called now.'),
        text('{"type":"browser_state","url":"https://a.example"}'),
        { type: 'image' },
        text('Red.'),
      ],
    })
  })
})
