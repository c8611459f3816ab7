import { getDocumentProxy } from 'unpdf'
import { isRecord } from '#lib/json.ts'
import { type DocumentText, joinPages } from './document-text.ts'
import { UnreadableFile } from './unreadable.ts'

/** A line that is further below the last one than this, in heights of its letters, is a new paragraph. */
const paragraphGap = 1.7

type Pdf = Awaited<ReturnType<typeof getDocumentProxy>>

/** The text of each page. Nothing in the document is run, and nothing outside of it is asked for. */
export async function readPdf(bytes: Uint8Array, charsMax: number): Promise<DocumentText> {
  const document = await openPdf(bytes)
  const pages: string[] = []
  let chars = 0
  for (let number = 1; number <= document.numPages; number++) {
    const page = await readPage(document, number)
    pages.push(page)
    chars += page.length
    if (chars > charsMax) throw new UnreadableFile('too_large')
  }
  return joinPages(pages)
}

async function openPdf(bytes: Uint8Array): Promise<Pdf> {
  try {
    return await getDocumentProxy(bytes, {
      disableFontFace: true,
      useSystemFonts: false,
      verbosity: 0,
    })
  } catch (error) {
    const isLocked = isRecord(error) && error['name'] === 'PasswordException'
    throw new UnreadableFile(isLocked ? 'encrypted' : 'invalid_file', error)
  }
}

/** Lines as they stand, with an empty one between paragraphs, as far as the distances show them. */
async function readPage(document: Pdf, number: number): Promise<string> {
  const page = await document.getPage(number)
  const { items } = await page.getTextContent()
  let text = ''
  let lineY: number | null = null
  for (const item of items) {
    if (!('str' in item)) continue
    const y = Number(item.transform[5])
    if (item.str.trim() !== '') {
      const isApart = lineY !== null && lineY - y > paragraphGap * item.height
      if (isApart && text.endsWith('\n')) text += '\n'
      lineY = y
    }
    text += item.hasEOL ? `${item.str}\n` : item.str
  }
  page.cleanup()
  return text
}
