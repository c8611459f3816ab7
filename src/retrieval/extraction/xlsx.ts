import { tableRow } from './document-text.ts'
import { relatedParts, relationId } from './package-parts.ts'
import { UnreadableFile } from './unreadable.ts'
import { readCellStyles } from './xlsx-dates.ts'
import { readXml } from './xml.ts'
import type { ZipFile } from './zip.ts'

const workbook = 'xl/workbook.xml'
/** In all sheets together. */
const rowsMax = 200_000
/** As many as a sheet can have. */
const columnsMax = 16_384
/** Empty cells between full ones that a row may have; beyond them its places mean nothing. */
const gapMax = 64

/** Each sheet as a heading and a table, with what its cells show; dates are written as ISO 8601. */
export function readXlsx(zip: ZipFile): string {
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
      // Charts have a sheet to themselves, and no cells.
      if (part?.kind !== 'worksheet') return
      sheets.push({ name: attributes['name'] ?? '', path: part.path })
    },
  })
  const showNumber = readCellStyles(zip, { path: pathOf('styles'), epoch1904 })
  let rowsLeft = rowsMax
  return sheets
    .map(({ name, path }) => {
      const rows = readSheet(zip.read(path), { strings, showNumber, rowsMax: rowsLeft })
      rowsLeft -= rows.length
      return rows.length === 0 ? '' : `## ${name}\n\n${rows.join('\n')}`
    })
    .filter((sheet) => sheet !== '')
    .join('\n\n')
}

type SheetContext = {
  readonly strings: readonly string[]
  readonly showNumber: (value: string, style: number) => string
  readonly rowsMax: number
}

function readSheet(bytes: Uint8Array, { strings, showNumber, rowsMax: max }: SheetContext) {
  const rows: string[] = []
  let cells: string[] = []
  let cell = { type: 'n', style: 0 }
  let value = ''
  let isValue = false
  const shown = (): string => {
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
        for (let at = 0; at < gap; at++) cells.push('')
      }
      isValue = name === 'v' || name === 't'
    },
    text(text) {
      if (isValue) value += text
    },
    close(name) {
      isValue = false
      if (name === 'c') cells.push(value === '' ? '' : shown())
      if (name !== 'row' || cells.every((text) => text.trim() === '')) return
      if (rows.length === max) throw new UnreadableFile('too_large')
      rows.push(tableRow(cells))
    },
  })
  return rows
}

/** `A1` is 0, `B7` is 1, `AA2` is 26; -1 where it is not said. */
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
  let isReading = false
  readXml(zip.read(path), {
    open({ name }) {
      if (name === 'si') text = ''
      // How Japanese is read stands beside it, and would double it.
      else if (name === 'rPh') isReading = true
      else if (name === 't') isText = !isReading
    },
    text(piece) {
      if (isText) text += piece
    },
    close(name) {
      if (name === 't') isText = false
      else if (name === 'rPh') isReading = false
      else if (name === 'si') strings.push(text)
    },
  })
  return strings
}

function isTrue(text: string | undefined): boolean {
  return text === '1' || text === 'true'
}
