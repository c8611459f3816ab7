import { type Glyph, isRightToLeft, logicalOrder } from './bidi.ts'
import { allocate, type Pdf, utf16At } from './pdfium.ts'

/** Distance of two lines, in line heights, above which a new paragraph begins. */
const paragraphGap = 1.5
/** Vertical distance of glyphs on one line, in line heights: accents and indices. */
const lineTolerance = 0.5
/** Share of characters without a known meaning above which the text of a page is noise. */
const unmappedShareMax = 0.5
/** Characters of a page that are asked for theirs. */
const unmappedSamples = 500
/** Where PDFium joins a word that is hyphenated at the end of a line. */
const lineHyphen = /\ufffe/g

export type PageText = {
  readonly text: string
  /** Characters whose fonts do not say what they mean. */
  readonly unmapped: number
}

/** The lines of a page, with an empty one at each large vertical gap. */
export function readPageText(pdf: Pdf, page: number): PageText {
  const { pdfium } = pdf
  const handle = pdfium.FPDFText_LoadPage(page)
  if (handle === 0) return { text: '', unmapped: 0 }
  const count = pdfium.FPDFText_CountChars(handle)
  const buffer = allocate(pdfium, Math.max(2 * (count + 1), boxBytes))
  const written = pdfium.FPDFText_GetText(handle, 0, count, buffer)
  const raw = utf16At(pdfium, buffer, written - 1)
  const unmapped = countUnmapped(pdfium, handle, count)
  const textPage: TextPage = { pdfium, handle, count, buffer }
  const lines = isRightToLeft(raw) ? linesByPlace(textPage) : linesInOrder(textPage, raw)
  pdfium.pdfium.wasmExports.free(buffer)
  pdfium.FPDFText_ClosePage(handle)
  return { text: unmapped > count * unmappedShareMax ? '' : joinLines(lines), unmapped }
}

/** Exact for short pages, an estimate for long ones. */
function countUnmapped(pdfium: Pdf['pdfium'], handle: number, count: number): number {
  const step = Math.ceil(count / unmappedSamples)
  let unmapped = 0
  for (let index = 0; index < count; index += step) {
    if (pdfium.FPDFText_HasUnicodeMapError(handle, index) === 1) unmapped += step
  }
  return unmapped
}

type TextPage = {
  readonly pdfium: Pdf['pdfium']
  /** Of the text of the page. */
  readonly handle: number
  readonly count: number
  /** For results. */
  readonly buffer: number
}

type Line = {
  readonly text: string
  readonly bottom: number
  readonly height: number
}

function joinLines(lines: readonly Line[]): string {
  let text = ''
  let previous: number | null = null
  for (const line of lines) {
    const isNewParagraph = previous !== null && previous - line.bottom > paragraphGap * line.height
    text += `${isNewParagraph ? '\n' : ''}${line.text.replace(lineHyphen, '')}\n`
    previous = line.bottom
  }
  return text
}

/** The lines as PDFium finds them. */
function linesInOrder(textPage: TextPage, raw: string): Line[] {
  let start = 0
  return raw.split('\r\n').flatMap((text) => {
    const first = text.search(/\S/)
    const at = start + first
    start += text.length + 2
    if (first === -1) return []
    const index = textPage.pdfium.FPDFText_GetCharIndexFromTextIndex(textPage.handle, at)
    const { top, bottom } = boxOf(textPage, index)
    return [{ text, bottom, height: top - bottom }]
  })
}

const boxBytes = 4 * Float64Array.BYTES_PER_ELEMENT

/** The line height and the advance of a character; zeros for an index that does not exist. */
function boxOf({ pdfium, handle, buffer }: TextPage, index: number) {
  if (index < 0 || !pdfium.FPDFText_GetLooseCharBox(handle, index, buffer)) {
    return { left: 0, top: 0, right: 0, bottom: 0 }
  }
  const bytes = 4 * Float32Array.BYTES_PER_ELEMENT
  const content = pdfium.pdfium.HEAPU8.slice(buffer, buffer + bytes).buffer
  const [left = 0, top = 0, right = 0, bottom = 0] = new Float32Array(content)
  return { left, top, right, bottom }
}

/** The middle of the ink and the origin of a character, in doubles. */
function inkOf({ pdfium, handle, buffer }: TextPage, index: number) {
  const read = () => new Float64Array(pdfium.pdfium.HEAPU8.slice(buffer, buffer + boxBytes).buffer)
  const width = Float64Array.BYTES_PER_ELEMENT
  const [left, right, bottom, top] = [0, 1, 2, 3].map((at) => buffer + at * width)
  pdfium.FPDFText_GetCharBox(handle, index, left ?? 0, right ?? 0, bottom ?? 0, top ?? 0)
  const [inkLeft = 0, inkRight = 0] = read()
  pdfium.FPDFText_GetCharOrigin(handle, index, left ?? 0, right ?? 0)
  const [x = 0, y = 0] = read()
  return { middle: (inkLeft + inkRight) / 2, x, y }
}

type PlacedLine = { y: number; height: number; text: string; glyphs: Glyph[] }

/**
 * The lines of a page with right-to-left text, whose glyphs are put in order by their places: PDFium
 * breaks lines at accents and reverses the letters of ligatures.
 */
function linesByPlace(textPage: TextPage): Line[] {
  const { pdfium, handle, count } = textPage
  const lines: PlacedLine[] = []
  let origin: { x: number; y: number } | null = null
  for (let index = 0; index < count; index++) {
    const char = String.fromCodePoint(Math.min(pdfium.FPDFText_GetUnicode(handle, index), 0x10ffff))
    const line = lines.at(-1)
    if (pdfium.FPDFText_IsGenerated(handle, index) === 1) {
      if (line !== undefined && char === ' ') line.text += char
      continue
    }
    const { left, right, top, bottom } = boxOf(textPage, index)
    const { middle, x, y } = inkOf(textPage, index)
    const height = top - bottom
    const last = line?.glyphs.at(-1)
    const isPart = last !== undefined && origin?.x === x && origin.y === y
    const isSameLine =
      line !== undefined && Math.abs(line.y - y) < lineTolerance * Math.max(line.height, height)
    origin = { x, y }
    if (isPart && line !== undefined) {
      line.text += char
      line.glyphs[line.glyphs.length - 1] = { ...last, text: last.text + char }
    } else {
      const glyph = { text: char, left, right, middle, height }
      if (isSameLine) {
        line.text += char
        line.glyphs.push(glyph)
      } else lines.push({ y, height, text: char, glyphs: [glyph] })
    }
  }
  return lines.flatMap(({ y, height, text, glyphs }) =>
    text.trim() === ''
      ? []
      : [{ text: isRightToLeft(text) ? logicalOrder(glyphs) : text, bottom: y, height }],
  )
}
