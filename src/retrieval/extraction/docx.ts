import { zipSync } from 'fflate'
import mammoth from 'mammoth'
import { htmlToText } from './html.ts'
import type { ZipFile } from './zip.ts'

/**
 * The text of a document, its headings, lists and tables as Markdown. The library unpacks by itself,
 * so it is given the parts anew as we unpacked them, within our limits, and no pictures.
 */
export async function readDocx(zip: ZipFile): Promise<string> {
  const parts = zip.names.filter((name) => /\.(xml|rels)$/i.test(name))
  const plain = zipSync(Object.fromEntries(parts.map((name) => [name, zip.read(name)])), {
    level: 0,
  })
  const { value } = await mammoth.convertToHtml(
    { buffer: Buffer.from(plain) },
    {
      convertImage: mammoth.images.imgElement(async () => ({ src: '' })),
      externalFileAccess: false,
      includeEmbeddedStyleMap: false,
    },
  )
  return htmlToText(value)
}
