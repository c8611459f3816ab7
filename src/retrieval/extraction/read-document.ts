import { fileTypeFromBuffer } from 'file-type'
import type { ChildRequest } from './child-protocol.ts'
import { decodeText } from './decode.ts'
import { type DocumentText, hasText, normalizeText, type PageImage } from './document-text.ts'
import type { Gaps } from './gaps.ts'
import { isOdf, readOdf } from './odf.ts'
import { readPdf } from './pdf/read-pdf.ts'
import { readPptx } from './pptx.ts'
import { readRtf } from './rtf.ts'
import { UnreadableFile } from './unreadable.ts'
import { readXlsx } from './xlsx.ts'
import { openZip } from './zip.ts'

/** Enough for detection; `file-type` would unpack archives in more. */
const headBytes = 4_100
/** A PDF header may follow other bytes. */
const pdfHeadBytes = 1_024

export type ReadOptions = ChildRequest & {
  /** Receives what the text lacks. */
  readonly gaps: Gaps
}

/**
 * The text of a file; its format is detected from the content. Throws `UnreadableFile` and errors of
 * parsers. Large parsers are loaded on demand, since the process reads one file only.
 */
export async function readDocument(
  bytes: Uint8Array,
  options: ReadOptions,
): Promise<DocumentText & { images: readonly PageImage[] }> {
  const { images = [], ...document } = await readByKind(bytes, options)
  if (!hasText(document.text) && images.length === 0) throw new UnreadableFile('no_text')
  if (document.text.length > options.charsMax) throw new UnreadableFile('too_large')
  return { ...document, images }
}

async function readByKind(
  bytes: Uint8Array,
  options: ReadOptions,
): Promise<DocumentText & { images?: readonly PageImage[] }> {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, headBytes))
  if (head.length === 0) throw new UnreadableFile('no_text')
  if (head.indexOf('PK\u0003\u0004', 0, 'latin1') === 0) return readOffice(bytes, options.gaps)
  const pdfAt = head.subarray(0, pdfHeadBytes).indexOf('%PDF-')
  if (pdfAt === 0) return readPdf(bytes, options)
  // Either a PDF after other bytes or a text about PDF.
  const pdf = pdfAt === -1 ? null : await readPdf(bytes, options).catch(ifInvalid)
  if (pdf !== null) return pdf
  if (/^\s*\{\\rtf/.test(head.toString('latin1', 0, 64)))
    return withoutPages(readRtf(bytes, options.gaps))
  await requireText(head, bytes)
  return withoutPages(await readPlain(bytes, options))
}

function ifInvalid(error: unknown): null {
  if (error instanceof UnreadableFile && error.code === 'invalid_file') return null
  throw error
}

async function readOffice(bytes: Uint8Array, gaps: Gaps): Promise<DocumentText> {
  const zip = openZip(bytes)
  if (zip.has('word/document.xml')) {
    const { readDocx } = await import('./docx.ts')
    return withoutPages(await readDocx(zip, gaps))
  }
  if (zip.has('ppt/presentation.xml')) return readPptx(zip, gaps)
  if (zip.has('xl/workbook.xml')) return withoutPages(readXlsx(zip, gaps))
  if (isOdf(zip)) return readOdf(zip, gaps)
  if (zip.has('META-INF/container.xml')) {
    const { readEpub } = await import('./epub.ts')
    return withoutPages(readEpub(zip, gaps))
  }
  throw new UnreadableFile('unsupported_file')
}

/** Detected formats of printable characters that are not text. */
const markupKinds: ReadonlySet<string> = new Set(['ps', 'eps'])
const textKinds: ReadonlySet<string> = new Set(['xml', 'vcf', 'ics'])

/** A text may begin with the magic number of a binary format, so the head must also have binary bytes. */
async function requireText(head: Uint8Array, bytes: Uint8Array): Promise<void> {
  const kind = (await fileTypeFromBuffer(head))?.ext
  if (kind === undefined || textKinds.has(kind)) return
  if (kind === 'cfb' && isEncryptedOffice(bytes)) throw new UnreadableFile('encrypted')
  if (markupKinds.has(kind) || !isPlain(head)) throw new UnreadableFile('unsupported_file')
}

/** A compound file with this stream. */
function isEncryptedOffice(bytes: Uint8Array): boolean {
  const entry = Buffer.from('EncryptedPackage', 'utf16le')
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes(entry)
}

function isPlain(head: Uint8Array): boolean {
  const text = new TextDecoder().decode(head, { stream: true })
  return !/(?![\t\n\r\f])[\p{Cc}\ufffd]/u.test(text)
}

async function readPlain(bytes: Uint8Array, { format, gaps }: ReadOptions): Promise<string> {
  const text = decodeText(bytes)
  gaps.add('undecodable', { count: text.match(/\ufffd/g)?.length ?? 0 })
  if (format === 'svg') throw new UnreadableFile('unsupported_file')
  const isHtml =
    format === 'html' || (format === 'unknown' && /^\s*<(!doctype html|html)\b/i.test(text))
  if (!isHtml) return text
  const { htmlToText } = await import('./html.ts')
  return htmlToText(text, gaps)
}

function withoutPages(text: string): DocumentText {
  return { text: normalizeText(text), pages: null }
}
