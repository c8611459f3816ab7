import { zipSync } from 'fflate'
import mammoth from 'mammoth'
import type { Gaps } from './gaps.ts'
import { htmlToText } from './html.ts'
import { countSkipped, readChart, readXml, relatedParts } from './office-xml.ts'
import type { ZipFile } from './zip.ts'

/**
 * The text of a document as Markdown. mammoth unpacks archives without limits, so it gets a new one
 * of the parts that `zip` unpacked, without images.
 */
export async function readDocx(zip: ZipFile, gaps: Gaps): Promise<string> {
  countSkipped(zip, gaps)
  const parts = zip.names.filter((name) => /\.(xml|rels)$/i.test(name))
  const archive = zipSync(Object.fromEntries(parts.map((name) => [name, zip.read(name)])), {
    level: 0,
  })
  const { value } = await mammoth.convertToHtml(
    { buffer: Buffer.from(archive) },
    {
      convertImage: mammoth.images.imgElement(async () => ({ src: '' })),
      externalFileAccess: false,
      includeEmbeddedStyleMap: false,
    },
  )
  return [
    ...readParts(zip, ['header']),
    htmlToText(value),
    ...readParts(zip, ['chart'], readChart),
    ...readParts(zip, ['diagramData', 'footer', 'comments']),
  ]
    .filter((text) => text !== '')
    .join('\n\n')
}

/** The text of parts that mammoth leaves out, such as headers; equal ones once. */
function readParts(zip: ZipFile, kinds: readonly string[], read = readParagraphs): string[] {
  const parts = [...relatedParts(zip, 'word/document.xml').values()].filter(
    ({ kind, path }) => kinds.includes(kind) && zip.has(path),
  )
  return [...new Set(parts.map(({ path }) => read(zip.read(path))))]
}

function readParagraphs(bytes: Uint8Array): string {
  const paragraphs: string[] = []
  let paragraph = ''
  let isText = false
  readXml(bytes, {
    open({ name }) {
      isText = name === 't'
      if (name === 'tab' || name === 'br') paragraph += ' '
    },
    text(text) {
      if (isText) paragraph += text
    },
    close(name) {
      isText = false
      if (name !== 'p') return
      if (paragraph.trim() !== '') paragraphs.push(paragraph.trim())
      paragraph = ''
    },
  })
  return paragraphs.join('\n')
}
