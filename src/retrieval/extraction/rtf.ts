import { isEncoding } from './decode.ts'
import { tableRow } from './document-text.ts'
import type { Gaps } from './gaps.ts'

/** Groups without text of the document. */
const ignored =
  /^(?:fonttbl|colortbl|stylesheet|info|pict|object|objdata|themedata|colorschememapping|datastore|latentstyles|listtable|listoverridetable|listtext|pntext|revtbl|rsidtbl|generator|fldinst|xmlnstbl|filetbl|mmathPr|sp|atnid|atnauthor|atndate|atnref|bkmkstart|bkmkend|pgptbl|userprops|xe|tc|nonshppict)$/
/** Optional groups with text; others of them are ignored. */
const optional = /^(?:shpinst|shptxt|annotation|footnote|endnote|ud|background|pn)$/

const signs: Readonly<Record<string, string>> = {
  par: '\n',
  sect: '\n\n',
  page: '\n\n',
  line: '\n',
  tab: '\t',
  emdash: '—',
  endash: '–',
  lquote: '‘',
  rquote: '’',
  ldblquote: '“',
  rdblquote: '”',
  bullet: '•',
  '~': '\u00a0',
  _: '-',
  '\n': '\n',
  '\r': '\n',
  '\\': '\\',
  '{': '{',
  '}': '}',
}

/** Code pages of fonts by their character set. */
const pageOfCharset: Readonly<Record<number, number>> = {
  128: 932,
  129: 949,
  134: 936,
  136: 950,
  161: 1253,
  162: 1254,
  163: 1258,
  177: 1255,
  178: 1256,
  186: 1257,
  204: 1251,
  222: 874,
  238: 1250,
}
const encodings: Readonly<Record<number, string>> = {
  866: 'ibm866',
  874: 'windows-874',
  932: 'shift_jis',
  936: 'gbk',
  949: 'euc-kr',
  950: 'big5',
  10000: 'macintosh',
  65001: 'utf-8',
}

type Group = {
  readonly isIgnored: boolean
  readonly isHidden: boolean
  readonly isFontTable: boolean
  readonly font: number
  /** Characters after a Unicode one, for readers that do not know Unicode. */
  readonly fallbackChars: number
  /** Written at its end. */
  readonly end: string
}

const token = /\\([a-z]+)(-?\d{1,10})? ?|\\'([0-9a-f]{2})|\\([\s\S])|([{}])|([^\\{}\r\n]+)/gi

/** The text of an RTF document; tables as Markdown. */
export function readRtf(bytes: Uint8Array, gaps: Gaps): string {
  const source = new TextDecoder('latin1').decode(bytes)
  const fontPages = new Map<number, number>()
  const stack: Group[] = []
  let group: Group = {
    isIgnored: false,
    isHidden: false,
    isFontTable: false,
    font: -1,
    fallbackChars: 1,
    end: '',
  }
  let defaultPage = 1252
  let isOptional = false
  let fallbackLeft = 0
  let pending: number[] = []
  let text = ''
  let cells: string[] = []
  let cellStart = 0

  const flush = () => {
    if (pending.length === 0) return
    text += decoderOf(fontPages.get(group.font) ?? defaultPage).decode(Uint8Array.from(pending))
    pending = []
  }
  const write = (more: string) => {
    flush()
    if (!group.isIgnored && !group.isHidden) text += more
  }
  const writeByte = (byte: number) => {
    if (fallbackLeft > 0) fallbackLeft -= 1
    else if (!group.isIgnored && !group.isHidden) pending.push(byte)
  }
  const change = (fields: Partial<Group>) => {
    flush()
    group = { ...group, ...fields }
  }
  const endCell = () => {
    flush()
    cells.push(text.slice(cellStart))
    text = text.slice(0, cellStart)
  }
  const endRow = () => {
    if (cells.length > 0) text += `\n${tableRow(cells)}`
    cells = []
    cellStart = text.length
  }
  const control = (word: string, value: number | null) => {
    if (isOptional && !optional.test(word)) change({ isIgnored: true })
    isOptional = false
    if (word === 'pict' && !group.isIgnored) gaps.add('images_skipped')
    if (word === 'object' && !group.isIgnored) gaps.add('parts_skipped')
    if (ignored.test(word)) change({ isIgnored: true, isFontTable: word === 'fonttbl' })
    else if (word === 'annotation' || word === 'footnote') {
      write(' (')
      change({ end: ')' })
    } else if (word === 'ansicpg' && value !== null) defaultPage = value
    else if (word === 'uc') change({ fallbackChars: value ?? 1 })
    else if (word === 'f') change({ font: value ?? 0 })
    else if (word === 'plain') change({ isHidden: false })
    else if (word === 'v') change({ isHidden: value !== 0 })
    else if (word === 'fcharset' && group.isFontTable)
      fontPages.set(group.font, pageOfCharset[value ?? 0] ?? defaultPage)
    else if (word === 'u' && value !== null) {
      write(String.fromCharCode(value & 0xffff))
      fallbackLeft = group.fallbackChars
    } else if (word === 'cell' || word === 'nestcell') endCell()
    else if (word === 'row' || word === 'nestrow') endRow()
    else if (word === 'trowd' && cells.length === 0) {
      flush()
      cellStart = text.length
    } else if (signs[word] !== undefined) write(signs[word])
  }

  token.lastIndex = 0
  for (let found = token.exec(source); found !== null; found = token.exec(source)) {
    const [, word, number, hex, sign, brace, plain] = found
    if (word !== undefined) {
      const value = number === undefined ? null : Number(number)
      if (word === 'bin') token.lastIndex += Math.max(value ?? 0, 0)
      else control(word, value)
    } else if (hex !== undefined) writeByte(Number.parseInt(hex, 16))
    else if (sign === '*') isOptional = true
    else if (sign !== undefined) write(signs[sign] ?? '')
    else if (brace === '{') {
      flush()
      stack.push(group)
      group = { ...group, end: '' }
    } else if (brace === '}') {
      write(group.end)
      group = stack.pop() ?? group
      isOptional = false
      fallbackLeft = 0
    } else for (const char of plain ?? '') writeByte(char.charCodeAt(0))
  }
  flush()
  return text
}

const decoders = new Map<number, TextDecoder>()

function decoderOf(page: number): TextDecoder {
  const known = decoders.get(page)
  if (known !== undefined) return known
  const label = encodings[page] ?? `windows-${page}`
  const decoder = new TextDecoder(isEncoding(label) ? label : 'windows-1252')
  decoders.set(page, decoder)
  return decoder
}
