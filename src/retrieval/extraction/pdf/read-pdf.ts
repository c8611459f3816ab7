import { type DocumentText, joinPages } from '../document-text.ts'
import { UnreadableFile } from '../unreadable.ts'
import { readFields } from './fields.ts'
import { readPageText } from './page-text.ts'
import { openPdf, type Pdf } from './pdfium.ts'

/** The text of each page. Runs no scripts and loads no external resources. */
export async function readPdf(bytes: Uint8Array, charsMax: number): Promise<DocumentText> {
  const pdf = await openPdf(bytes)
  const pages: string[] = []
  let chars = 0
  for (let index = 0; index < pdf.pagesCount; index++) {
    const page = readPage(pdf, index)
    pages.push(page)
    chars += page.length
    if (chars > charsMax) throw new UnreadableFile('too_large')
  }
  return joinPages(pages)
}

function readPage(pdf: Pdf, index: number): string {
  const page = pdf.pdfium.FPDF_LoadPage(pdf.document, index)
  if (page === 0) return ''
  const { text } = readPageText(pdf, page)
  const fields = readFields(pdf, page)
  pdf.pdfium.FPDF_ClosePage(page)
  return fields.length === 0 ? text : `${text}\n\n${fields.join('\n')}`
}
