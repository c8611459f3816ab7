import { isRecord, parseJson } from '#lib/json.ts'
import { type ChildReport, readyLine } from './child-messages.ts'
import { isUnreadableCode } from './unreadable.ts'

export type ChildAnswer = {
  /** Whether it came as far as to look at the file. */
  readonly isReady: boolean
  /** Null where it ended without one, or said what it may not say. */
  readonly report: ChildReport | null
  readonly text: string
}

/** A character of a text has so many bytes in UTF-8. */
const bytesPerChar = 3
/** The lines before the text; the starts of pages are the longest part. */
const linesBytesMax = 8_388_608

/**
 * Reads what a child writes until it is complete, or ends, or is more than may come. A child reads
 * what strangers wrote, so its word is believed only as far as it is well formed.
 */
export async function readAnswer(
  output: ReadableStream<Uint8Array>,
  charsMax: number,
): Promise<ChildAnswer> {
  const bytesMax = charsMax * bytesPerChar + linesBytesMax
  const pieces: Uint8Array[] = []
  let lines: Lines | null = null
  let bytes = 0
  for await (const piece of output) {
    pieces.push(piece)
    bytes += piece.length
    if (lines === null || lines.textAt === 0) lines = readLines(pieces, bytes)
    if (bytes > bytesMax || isComplete(lines, bytes)) break
  }
  const { isReady, report, textAt } = lines ?? { isReady: false, report: null, textAt: 0 }
  if (report?.type !== 'read') return { isReady, report, text: '' }
  const text = new TextDecoder().decode(Buffer.concat(pieces).subarray(textAt))
  const isWhole = bytes === textAt + report.bytes && text.length <= charsMax
  const isInside = report.pages?.every((start) => start <= text.length) ?? true
  return { isReady, report: isWhole && isInside ? report : null, text }
}

type Lines = { isReady: boolean; report: ChildReport | null; textAt: number }

/** Null while there may be more of them to come. */
function readLines(pieces: readonly Uint8Array[], bytes: number): Lines | null {
  const head = Buffer.concat(pieces, Math.min(bytes, linesBytesMax))
  if (!head.toString('latin1', 0, readyLine.length).startsWith(readyLine)) return null
  const end = head.indexOf(0x0a, readyLine.length)
  if (end === -1) return { isReady: true, report: null, textAt: 0 }
  const report = readReport(parseJson(head.toString('utf8', readyLine.length, end)))
  return { isReady: true, report, textAt: end + 1 }
}

function isComplete(lines: Lines | null, bytes: number): boolean {
  if (lines === null || lines.textAt === 0) return false
  const { report, textAt } = lines
  return report?.type !== 'read' || bytes >= textAt + report.bytes
}

function readReport(said: unknown): ChildReport | null {
  if (!isRecord(said)) return null
  const { type, code, bytes, pages } = said
  if (type === 'unreadable' && isUnreadableCode(code)) return { type, code }
  if (type !== 'read' || typeof bytes !== 'number') return null
  if (pages !== null && !isPageStarts(pages)) return null
  return { type, bytes, pages }
}

function isPageStarts(pages: unknown): pages is readonly number[] {
  if (!Array.isArray(pages)) return false
  return pages.every(
    (start, at) => Number.isInteger(start) && start >= (at === 0 ? 0 : Number(pages[at - 1])),
  )
}
