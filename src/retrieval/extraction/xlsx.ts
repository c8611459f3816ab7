import { tableRow } from './document-text.ts'
import type { Gaps } from './gaps.ts'
import { countSkipped, readXml, relatedParts, relationId } from './office-xml.ts'
import { rowsMax, withRepeatedHead } from './sheet.ts'
import type { ZipFile } from './zip.ts'

const workbook = 'xl/workbook.xml'
/** The limit of the format. */
const columnsMax = 16_384
/** Empty cells kept between two cells; larger gaps carry no meaning. */
const gapMax = 64

/** Renders each sheet as a heading and a table of displayed values; dates in ISO 8601. */
export function readXlsx(zip: ZipFile, gaps: Gaps): string {
  countSkipped(zip, gaps)
  const parts = relatedParts(zip, workbook)
  const named = [...parts.values()]
  const pathOf = (kind: string) => named.find((part) => part.kind === kind)?.path
  const strings = readSharedStrings(zip, pathOf('sharedStrings'))
  const sheets: { name: string; path: string }[] = []
  let epoch1904 = false
  readXml(zip.read(workbook), {
    open({ name, attributes }) {
      if (name === 'workbookPr') epoch1904 = isTrue(attributes['date1904'])
      if (name !== 'sheet') return
      const part = parts.get(relationId(attributes))
      // Chart sheets have no cells.
      if (part?.kind !== 'worksheet') return
      sheets.push({ name: attributes['name'] ?? '', path: part.path })
    },
  })
  const showNumber = readCellStyles(zip, { path: pathOf('styles'), epoch1904 })
  let rowsLeft = rowsMax
  return sheets
    .map(({ name, path }) => {
      const rows = readSheet(zip.read(path), { strings, showNumber, gaps, name, rowsMax: rowsLeft })
      rowsLeft -= rows.length
      return rows.length === 0 ? '' : `## ${name}\n\n${withRepeatedHead(rows).join('\n')}`
    })
    .filter((sheet) => sheet !== '')
    .join('\n\n')
}

type SheetContext = {
  readonly strings: readonly string[]
  readonly showNumber: (value: string, style: number) => string
  readonly gaps: Gaps
  readonly name: string
  readonly rowsMax: number
}

function readSheet(bytes: Uint8Array, context: SheetContext) {
  const { strings, showNumber, gaps, name: sheet, rowsMax: max } = context
  let skipped = 0
  const rows: string[] = []
  let cells: string[] = []
  let cell = { type: 'n', style: 0 }
  let value = ''
  let isValue = false
  const displayed = (): string => {
    if (cell.type === 's') return strings[Number(value)] ?? ''
    if (cell.type === 'b') return isTrue(value) ? 'TRUE' : 'FALSE'
    return cell.type === 'n' ? showNumber(value, cell.style) : value
  }
  readXml(bytes, {
    open({ name, attributes }) {
      if (name === 'row') cells = []
      if (name === 'c') {
        cell = { type: attributes['t'] ?? 'n', style: Number(attributes['s'] ?? 0) }
        value = ''
        const gap = Math.min(columnOf(attributes['r']) - cells.length, gapMax)
        for (let index = 0; index < gap; index++) cells.push('')
      }
      isValue = name === 'v' || name === 't'
    },
    text(text) {
      if (isValue) value += text
    },
    close(name) {
      isValue = false
      if (name === 'c') cells.push(value === '' ? '' : displayed())
      if (name !== 'row' || cells.every((text) => text.trim() === '')) return
      if (rows.length < max) rows.push(tableRow(cells))
      else skipped++
    },
  })
  if (skipped > 0) gaps.add('rows_skipped', { count: skipped, place: sheet.slice(0, 100) })
  return rows
}

/** `A1` is 0, `B7` is 1, `AA2` is 26; -1 without a reference. */
function columnOf(reference = ''): number {
  let column = 0
  for (const letter of /^[A-Z]{1,3}/.exec(reference)?.[0] ?? '') {
    column = column * 26 + letter.charCodeAt(0) - 64
  }
  return Math.min(column, columnsMax) - 1
}

function readSharedStrings(zip: ZipFile, path: string | undefined): string[] {
  const strings: string[] = []
  if (path === undefined) return strings
  let text = ''
  let isText = false
  let isPhonetic = false
  readXml(zip.read(path), {
    open({ name }) {
      if (name === 'si') text = ''
      // Phonetic readings of Japanese would duplicate the text.
      else if (name === 'rPh') isPhonetic = true
      else if (name === 't') isText = !isPhonetic
    },
    text(part) {
      if (isText) text += part
    },
    close(name) {
      if (name === 't') isText = false
      else if (name === 'rPh') isPhonetic = false
      else if (name === 'si') strings.push(text)
    },
  })
  return strings
}

function isTrue(text: string | undefined): boolean {
  return text === '1' || text === 'true'
}

/** Built-in number formats of dates. */
const builtInDates: ReadonlySet<number> = new Set([14, 15, 16, 17, 22, 27, 30, 36, 50, 57])
const dayMs = 86_400_000
/** Day 0 of the two calendars; the usual one counts 29 February 1900, which did not exist. */
const epoch1900Ms = Date.UTC(1899, 11, 30)
const epoch1904Ms = Date.UTC(1904, 0, 1)
/** The last day of the format. */
const daysMax = 2_958_466

/** Formats the number of a cell by its style: dates in ISO 8601, others unchanged. */
function readCellStyles(
  zip: ZipFile,
  { path, epoch1904 }: { path: string | undefined; epoch1904: boolean },
): (value: string, style: number) => string {
  const isDate = path === undefined ? [] : dateStyles(zip.read(path))
  const epochMs = epoch1904 ? epoch1904Ms : epoch1900Ms
  return (value, style) => {
    const days = Number(value)
    if (isDate[style] !== true || !(days >= 1 && days < daysMax)) return value
    const date = new Date(epochMs + Math.round(days * dayMs)).toISOString()
    return Number.isInteger(days) ? date.slice(0, 10) : date.slice(0, 19).replace('T', ' ')
  }
}

/** For each cell style, whether its numbers are dates. */
function dateStyles(bytes: Uint8Array): boolean[] {
  const customDates = new Set<number>()
  const styles: boolean[] = []
  let isCellStyle = false
  readXml(bytes, {
    open({ name, attributes }) {
      const format = Number(attributes['numFmtId'])
      if (name === 'numFmt' && isDateFormat(attributes['formatCode'] ?? '')) customDates.add(format)
      if (name === 'cellXfs') isCellStyle = true
      if (name === 'xf' && isCellStyle)
        styles.push(builtInDates.has(format) || customDates.has(format))
    },
    close(name) {
      if (name === 'cellXfs') isCellStyle = false
    },
  })
  return styles
}

/** Has a year or day outside of quoted text, colours and conditions. */
function isDateFormat(code: string): boolean {
  return /[yd]/i.test(code.replace(/"[^"]*"|\[[^\]]*\]|\\./g, ''))
}
