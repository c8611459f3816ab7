import { type DocumentText, hasText, joinPages, type PageImage } from '../document-text.ts'
import type { Gaps } from '../gaps.ts'
import type { ReadOptions } from '../read-document.ts'
import { UnreadableFile } from '../unreadable.ts'
import { readFields } from './fields.ts'
import { createOcr } from './ocr.ts'
import { createPageImages } from './page-images.ts'
import { readPageText } from './page-text.ts'
import { openPdf, type Pdf } from './pdfium.ts'

/** The text of each page. Runs no scripts and loads no external resources. */
export async function readPdf(
  bytes: Uint8Array,
  { charsMax, gaps, ...options }: ReadOptions,
): Promise<DocumentText & { images: readonly PageImage[] }> {
  const pdf = await openPdf(bytes)
  const pages: string[] = []
  const pageImages = options.pageImages ? createPageImages(pdf) : null
  const ocr = options.ocr === null ? null : createOcr(pdf, options.ocr)
  let chars = 0
  for (let index = 0; index < pdf.pagesCount; index++) {
    let page = readPage(pdf, index, gaps)
    if (!hasText(page)) {
      await pageImages?.add(index)
      if (pageImages === null && ocr !== null) page = await ocr.read(index)
      const code = hasText(page) ? 'pages_recognized' : 'pages_without_text'
      gaps.add(code, { place: index + 1 })
    }
    pages.push(page)
    chars += page.length
    if (chars > charsMax) throw new UnreadableFile('too_large')
  }
  gaps.add('parts_skipped', { count: pdf.pdfium.FPDFDoc_GetAttachmentCount(pdf.document) })
  return { ...joinPages(pages), images: pageImages?.images ?? [] }
}

function readPage(pdf: Pdf, index: number, gaps: Gaps): string {
  const page = pdf.pdfium.FPDF_LoadPage(pdf.document, index)
  if (page === 0) return ''
  const { text, unmapped } = readPageText(pdf, page)
  if (text !== '') {
    gaps.add('undecodable', { count: unmapped })
    gaps.add('images_skipped', { count: countImages(pdf, page) })
  }
  const fields = readFields(pdf, page)
  pdf.pdfium.FPDF_ClosePage(page)
  return fields.length === 0 ? text : `${text}\n\n${fields.join('\n')}`
}

/** A type of page objects. */
const image = 3
/** Objects of a page that are looked at. */
const objectsMax = 10_000

function countImages({ pdfium }: Pdf, page: number): number {
  const count = Math.min(pdfium.FPDFPage_CountObjects(page), objectsMax)
  let images = 0
  for (let index = 0; index < count; index++) {
    if (pdfium.FPDFPageObj_GetType(pdfium.FPDFPage_GetObject(page, index)) === image) images++
  }
  return images
}
