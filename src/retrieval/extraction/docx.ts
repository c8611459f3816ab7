import { zipSync } from 'fflate'
import mammoth from 'mammoth'
import { htmlToText } from './html.ts'
import type { ZipFile } from './zip.ts'

/**
 * The text of a document as Markdown. mammoth unpacks archives without limits, so it gets a new one
 * of the parts that `zip` unpacked, without images.
 */
export async function readDocx(zip: ZipFile): Promise<string> {
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
  return htmlToText(value)
}
