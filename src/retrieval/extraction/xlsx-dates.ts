import { readXml } from './xml.ts'
import type { ZipFile } from './zip.ts'

/** Number formats that every spreadsheet knows without their being written down, and that are dates. */
const builtInDates: ReadonlySet<number> = new Set([14, 15, 16, 17, 22, 27, 30, 36, 50, 57])
const dayMs = 86_400_000
/** Day 0 of the two calendars; the usual one counts a 29 February 1900 that never was. */
const epoch1900Ms = Date.UTC(1899, 11, 30)
const epoch1904Ms = Date.UTC(1904, 0, 1)
/** The last day that a spreadsheet knows. */
const daysMax = 2_958_466

/** How a number is shown in a cell of a style: a date as one, everything else as it stands. */
export function readCellStyles(
  zip: ZipFile,
  { path, epoch1904 }: { path: string | undefined; epoch1904: boolean },
): (value: string, style: number) => string {
  const isDate = path === undefined ? [] : dateStyles(zip.read(path))
  const epochMs = epoch1904 ? epoch1904Ms : epoch1900Ms
  return (value, style) => {
    const days = Number(value)
    if (isDate[style] !== true || !(days >= 1 && days < daysMax)) return value
    const shown = new Date(epochMs + Math.round(days * dayMs)).toISOString()
    return Number.isInteger(days) ? shown.slice(0, 10) : shown.slice(0, 19).replace('T', ' ')
  }
}

/** For each style of a cell, whether its numbers are dates. */
function dateStyles(bytes: Uint8Array): boolean[] {
  const ownDates = new Set<number>()
  const styles: boolean[] = []
  let isCellStyle = false
  readXml(bytes, {
    open({ name, attributes }) {
      const format = Number(attributes['numFmtId'])
      if (name === 'numFmt' && isDateFormat(attributes['formatCode'] ?? '')) ownDates.add(format)
      if (name === 'cellXfs') isCellStyle = true
      if (name === 'xf' && isCellStyle)
        styles.push(builtInDates.has(format) || ownDates.has(format))
    },
    close(name) {
      if (name === 'cellXfs') isCellStyle = false
    },
  })
  return styles
}

/** A year or a day outside of quoted text and of colours and conditions in brackets. */
function isDateFormat(code: string): boolean {
  return /[yd]/i.test(code.replace(/"[^"]*"|\[[^\]]*\]|\\./g, ''))
}
