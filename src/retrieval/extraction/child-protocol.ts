import { isRecord, parseJson } from '#lib/json.ts'
import type { PageImage } from './document-text.ts'
import { type Gap, isGap } from './gaps.ts'
import type { OcrRequest } from './pdf/ocr.ts'
import { imageBytesMax } from './pdf/page-images.ts'
import { isUnreadableCode, type UnreadableCode } from './unreadable.ts'

/** The messages between the server and the process that reads a file. */

/** The first line of the output. If the child fails later, the file is the cause. */
export const readyLine = 'ready\n'

/** The first line of the input, before the file. */
export type ChildRequest = {
  readonly format: TextFormat
  readonly charsMax: number
  /** The size of the file. */
  readonly bytes: number
  /** Whether to render pages of a PDF that have no text. */
  readonly pageImages: boolean
  /** Null: such pages are not recognized. */
  readonly ocr: OcrRequest | null
}

/** The second line of the output, before the text and the images. */
export type ChildReport =
  | {
      readonly type: 'read'
      readonly pages: readonly number[] | null
      /** The length of the text in UTF-8. */
      readonly bytes: number
      readonly images: readonly { readonly page: number; readonly bytes: number }[]
      readonly gaps: readonly Gap[]
    }
  | {
      readonly type: 'unreadable'
      readonly code: UnreadableCode
      readonly gaps: readonly Gap[]
    }

/** How to read a file without a magic number. */
export type TextFormat = 'html' | 'svg' | 'text' | 'unknown'

const formatsByExtension: Readonly<Record<string, TextFormat>> = {
  htm: 'html',
  html: 'html',
  xhtml: 'html',
  svg: 'svg',
}

/** By the extension; the declared type counts only if there is none. */
export function textFormatOf(name: string, mimeType: string): TextFormat {
  const extension = /\.([a-z0-9]{1,16})$/i.exec(name)?.[1]?.toLowerCase()
  if (extension !== undefined) return formatsByExtension[extension] ?? 'text'
  if (/^(text\/html|application\/xhtml\+xml)\b/i.test(mimeType)) return 'html'
  return /^image\/svg/i.test(mimeType) ? 'svg' : 'unknown'
}

export type ChildOutput = {
  /** Whether the child has started to read the file. */
  readonly isReady: boolean
  /** Null if there is no valid report. */
  readonly report: ChildReport | null
  readonly text: string
  readonly images: readonly PageImage[]
}

/** Maximum in UTF-8 per UTF-16 unit. */
const bytesPerChar = 3
/** The lines before the text; mostly the starts of pages. */
const linesBytesMax = 8_388_608

/**
 * Reads the output of a child until it ends or exceeds the limit. The child handles untrusted files,
 * so its output is validated.
 */
export async function readOutput(
  stream: ReadableStream<Uint8Array>,
  charsMax: number,
): Promise<ChildOutput> {
  const bytesMax = charsMax * bytesPerChar + linesBytesMax + imageBytesMax
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of stream) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > bytesMax) break
  }
  const output = Buffer.concat(chunks)
  const isReady = output.toString('latin1', 0, readyLine.length) === readyLine
  const end = isReady ? output.indexOf(0x0a, readyLine.length) : -1
  if (end === -1) return { isReady, report: null, text: '', images: [] }
  const report = parseReport(parseJson(output.toString('utf8', readyLine.length, end)))
  if (report?.type !== 'read') return { isReady, report, text: '', images: [] }
  let at = end + 1 + report.bytes
  const text = new TextDecoder().decode(output.subarray(end + 1, at))
  const images = report.images.map((image) => {
    const content = output.subarray(at, at + image.bytes)
    at += image.bytes
    return { page: image.page, content }
  })
  const isValid =
    bytes === at &&
    text.length <= charsMax &&
    (report.pages?.every((start) => start <= text.length) ?? true)
  return { isReady, report: isValid ? report : null, text, images }
}

function parseReport(value: unknown): ChildReport | null {
  if (!isRecord(value)) return null
  const { type, code, bytes, pages, images, gaps } = value
  if (!Array.isArray(gaps) || !gaps.every(isGap)) return null
  if (type === 'unreadable' && isUnreadableCode(code)) return { type, code, gaps }
  if (type !== 'read' || typeof bytes !== 'number') return null
  if (pages !== null && !isPageStarts(pages)) return null
  if (!Array.isArray(images) || !images.every(isImage)) return null
  return { type, bytes, pages, images, gaps }
}

function isImage(value: unknown): value is { page: number; bytes: number } {
  if (!isRecord(value)) return false
  return [value['page'], value['bytes']].every(
    (count) => Number.isSafeInteger(count) && Number(count) > 0,
  )
}

function isPageStarts(pages: unknown): pages is readonly number[] {
  if (!Array.isArray(pages)) return false
  return pages.every(
    (start, index) =>
      Number.isInteger(start) && start >= (index === 0 ? 0 : Number(pages[index - 1])),
  )
}
