import { getDocumentProxy } from 'unpdf'
import { asRecord, isRecord } from '#lib/json.ts'
import { type DocumentText, joinPages } from './document-text.ts'
import { UnreadableFile } from './unreadable.ts'

/** Distance of two lines, in line heights, above which a new paragraph begins. */
const paragraphGap = 1.7

type Pdf = Awaited<ReturnType<typeof getDocumentProxy>>

/** The text of each page. Runs no scripts and loads no external resources. */
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
    const isEncrypted = isRecord(error) && error['name'] === 'PasswordException'
    throw new UnreadableFile(isEncrypted ? 'encrypted' : 'invalid_file', error)
  }
}

/** The lines of a page, with an empty one at each large vertical gap. */
async function readPage(document: Pdf, number: number): Promise<string> {
  const page = await document.getPage(number)
  const { items } = await page.getTextContent()
  let text = ''
  let lineY: number | null = null
  for (const item of items) {
    if (!('str' in item)) continue
    const y = Number(item.transform[5])
    if (item.str.trim() !== '') {
      const isNewParagraph = lineY !== null && lineY - y > paragraphGap * item.height
      if (isNewParagraph && text.endsWith('\n')) text += '\n'
      lineY = y
    }
    text += item.hasEOL ? `${item.str}\n` : item.str
  }
  const fields = (await page.getAnnotations()).flatMap(fieldLine)
  page.cleanup()
  return fields.length === 0 ? text : `${text}\n\n${fields.join('\n')}`
}

/** The name and value of a filled form field, and the text of a note. */
function fieldLine(annotation: unknown): string[] {
  const { fieldType, fieldValue, fieldName, alternativeText, contentsObj } = asRecord(annotation)
  if (fieldType === undefined) {
    const note = asRecord(contentsObj)['str']
    return typeof note === 'string' && note.trim() !== '' ? [note] : []
  }
  const values = [fieldValue].flat().filter((value) => typeof value === 'string')
  const value = values.join(', ').trim()
  if (value === '' || value === 'Off') return []
  const name = [alternativeText, fieldName].find(
    (label) => typeof label === 'string' && label !== '',
  )
  return [name === undefined ? value : `${name}: ${value}`]
}
