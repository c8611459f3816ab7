import { type DocumentText, joinPages, normalizeText, tableRow } from './document-text.ts'
import type { Gaps } from './gaps.ts'
import { countSkipped, readXml } from './office-xml.ts'
import { rowsMax, withRepeatedHead } from './sheet.ts'
import { UnreadableFile } from './unreadable.ts'
import type { ZipFile } from './zip.ts'

/** Documents, sheets and slides of LibreOffice and others (OpenDocument). */

const manifest = 'META-INF/manifest.xml'
/** Copies of a cell or row that a document stores once. */
const repeatsMax = 64
const headingLevelMax = 6

export function isOdf(zip: ZipFile): boolean {
  return zip.has('content.xml') && zip.has(manifest)
}

/** One page per slide; sheets as tables; headers and footers of the pages around the text. */
export function readOdf(zip: ZipFile, gaps: Gaps): DocumentText {
  if (zip.has(manifest) && /<(?:\w+:)?encryption-data/.test(decode(zip.read(manifest)))) {
    throw new UnreadableFile('encrypted')
  }
  countSkipped(zip, gaps)
  gaps.add('parts_skipped', {
    count: zip.names.filter((name) => /^Object [^/]+\/content\.xml$/.test(name)).length,
  })
  const { blocks, slides, isSheet } = readContent(zip.read('content.xml'), gaps, {
    isStyles: false,
  })
  if (slides.length > 0) return joinPages(slides)
  const { headers, footers } =
    !isSheet && zip.has('styles.xml')
      ? readContent(zip.read('styles.xml'), gaps, { isStyles: true })
      : { headers: [], footers: [] }
  const parts = [...new Set(headers), ...blocks, ...new Set(footers)]
  return { text: normalizeText(parts.join('\n\n')), pages: null }
}

/** Without text, or with text that the document does not show. */
const ignored: ReadonlySet<string> = new Set([
  'tracked-changes',
  'note-citation',
  'sender-initials',
  'date-time-decl',
  'footer-decl',
  'header-decl',
  'script',
  'title',
])

/** Of a comment, besides its text. */
const ofComment = /^(?:creator|creator-initials|date|date-string)$/
/** Repeated on every slide. */
const ofEverySlide = /^(?:page-number|date-time|footer|header)$/

type Table = { rows: string[]; cells: string[]; name: string; isSheet: boolean }

function readContent(bytes: Uint8Array, gaps: Gaps, { isStyles }: { isStyles: boolean }) {
  const blocks: string[] = []
  const slides: string[] = []
  const headers: string[] = []
  const footers: string[] = []
  const fields: string[] = []
  const comments: string[] = []
  /** Open paragraphs: a note is in the middle of another. */
  const paragraphs: string[] = []
  const tables: Table[] = []
  let target = blocks
  let ignoredDepth = 0
  let prefix = ''
  let isSheet = false
  let isComment = false
  const repeats = { cells: 1, rows: 1 }
  let cell = { text: [] as string[], date: '' }
  let rowsLeft = rowsMax

  const append = (text: string) => {
    if (paragraphs.length > 0) paragraphs[paragraphs.length - 1] += text
  }
  const endParagraph = () => {
    const text = paragraphs.pop()?.trim() ?? ''
    if (text === '') return
    if (isComment) {
      comments.push(text)
      return
    }
    // A note follows its reference.
    if (paragraphs.length > 0) {
      append(` (${text})`)
      return
    }
    if (tables.length > 0) cell.text.push(text)
    else target.push(`${prefix}${text}`)
    prefix = ''
  }
  const endCell = () => {
    const text = cell.date === '' ? cell.text.join(' ') : cell.date
    const count = Math.min(repeats.cells, repeatsMax)
    for (let index = 0; index < count; index++) tables.at(-1)?.cells.push(text)
    cell = { text: [], date: '' }
  }
  const endRow = (table: Table) => {
    const cells = table.cells.splice(0)
    while (cells.at(-1) === '') cells.pop()
    if (cells.length === 0) return
    const count = Math.min(repeats.rows, repeatsMax, rowsLeft)
    const row = tableRow(cells)
    for (let index = 0; index < count; index++) table.rows.push(row)
    rowsLeft -= count
    gaps.add('rows_skipped', { count: repeats.rows - count, place: table.name.slice(0, 100) })
  }
  const endTable = () => {
    const table = tables.pop()
    if (table === undefined || table.rows.length === 0) return
    const { rows, name } = table
    const text = table.isSheet
      ? `## ${name}\n\n${withRepeatedHead(rows).join('\n')}`
      : rows.join('\n')
    if (tables.length > 0) cell.text.push(text)
    else target.push(text)
  }

  readXml(bytes, {
    open({ name, attributes }) {
      const attribute = (key: string) =>
        Object.entries(attributes).find(([full]) => full.endsWith(`:${key}`))?.[1] ?? ''
      if (name === 'annotation') isComment = true
      const isIgnored =
        ignored.has(name) ||
        (isComment && ofComment.test(name)) ||
        (name === 'frame' && ofEverySlide.test(attribute('class')))
      if (isIgnored || ignoredDepth > 0) {
        ignoredDepth += 1
        return
      }
      if (name === 'spreadsheet') isSheet = true
      else if (isStyles && /^header(?:-|$)/.test(name)) target = headers
      else if (isStyles && /^footer(?:-|$)/.test(name)) target = footers
      else if (name === 'page' && 'draw:name' in attributes) target = []
      else if (name === 'frame' && attribute('class') === 'title') prefix = '## '
      else if (name === 'h') {
        const level = Math.min(Number(attribute('outline-level')) || 1, headingLevelMax)
        prefix = `${'#'.repeat(level)} `
        paragraphs.push('')
      } else if (name === 'p') paragraphs.push('')
      else if (name === 'list-item') prefix = '- '
      else if (name === 's') append(' '.repeat(Math.min(Number(attribute('c')) || 1, repeatsMax)))
      else if (name === 'tab' || name === 'line-break') append(name === 'tab' ? '\t' : '\n')
      else if (name === 'table')
        tables.push({ rows: [], cells: [], name: attribute('name'), isSheet })
      else if (name === 'table-row') repeats.rows = Number(attribute('number-rows-repeated')) || 1
      else if (name === 'table-cell' || name === 'covered-table-cell') {
        repeats.cells = Number(attribute('number-columns-repeated')) || 1
        cell.date = attribute('date-value').replace('T', ' ')
      } else if (attribute('current-value') !== '')
        fields.push(`${attribute('name')}: ${attribute('current-value')}`)
    },
    text(text) {
      if (ignoredDepth === 0) append(text.replace(/\s+/g, ' '))
    },
    close(name) {
      if (ignoredDepth > 0) {
        ignoredDepth -= 1
        return
      }
      if (name === 'annotation') isComment = false
      const table = tables.at(-1)
      if (name === 'p' || name === 'h') endParagraph()
      else if (name === 'table-cell' || name === 'covered-table-cell') endCell()
      else if (name === 'table-row' && table !== undefined) endRow(table)
      else if (name === 'table') endTable()
      else if (name === 'page' && target !== blocks) {
        slides.push(target.join('\n'))
        target = blocks
      } else if (isStyles && /^(?:header|footer)(?:-|$)/.test(name)) target = blocks
    },
  })
  blocks.push(...fields, ...comments)
  return { blocks, slides, headers, footers, isSheet }
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes)
}
