import type { PageImage } from '../document-text.ts'
import type { Pdf } from './pdfium.ts'
import { renderPage } from './render.ts'

/** What models look at; larger images are scaled down by them. */
const size = { dpi: 300, sideMax: 1_568 }
const quality = 80
const imagesMax = 20
/** Of all images of a file. */
export const imageBytesMax = 8_388_608

/** Pictures of the pages that have no text, as JPEG. */
export function createPageImages(pdf: Pdf) {
  const images: PageImage[] = []
  let bytes = 0
  return {
    images,
    /** Without effect above the limits. */
    async add(index: number): Promise<void> {
      if (images.length === imagesMax) return
      const picture = renderPage(pdf, index, size)
      if (picture === null) return
      const content = await new Bun.Image(picture).jpeg({ quality }).bytes()
      if (bytes + content.length > imageBytesMax) return
      bytes += content.length
      images.push({ page: index + 1, content })
    },
  }
}
