import type { Pdf } from './pdfium.ts'

/** Limits of a picture of a page; a page has any size. */
export type PictureSize = { readonly dpi: number; readonly sideMax: number }

const pointsPerInch = 72
const bgrFormat = 2
const white = 0xffffffff
/** With notes and form fields. */
const withAnnotations = 1
const bmpHeadBytes = 54
const bytesPerPixel = 3

/** A page as a BMP; null for a page without an area, or without memory for it. */
export function renderPage(
  { pdfium, document }: Pdf,
  index: number,
  { dpi, sideMax }: PictureSize,
): Uint8Array<ArrayBuffer> | null {
  const page = pdfium.FPDF_LoadPage(document, index)
  if (page === 0) return null
  const sides = [pdfium.FPDF_GetPageWidthF(page), pdfium.FPDF_GetPageHeightF(page)]
  const scale = Math.min(dpi / pointsPerInch, sideMax / Math.max(...sides))
  const [width = 0, height = 0] = sides.map((points) => Math.round(points * scale))
  const bitmap =
    width > 0 && height > 0 ? pdfium.FPDFBitmap_CreateEx(width, height, bgrFormat, 0, 0) : 0
  if (bitmap === 0) {
    pdfium.FPDF_ClosePage(page)
    return null
  }
  pdfium.FPDFBitmap_FillRect(bitmap, 0, 0, width, height, white)
  pdfium.FPDF_RenderPageBitmap(bitmap, page, 0, 0, width, height, 0, withAnnotations)
  const start = pdfium.FPDFBitmap_GetBuffer(bitmap)
  const stride = pdfium.FPDFBitmap_GetStride(bitmap)
  const rows = pdfium.pdfium.HEAPU8.subarray(start, start + stride * height)
  const picture = bmpOf(rows, { width, height, stride })
  pdfium.FPDFBitmap_Destroy(bitmap)
  pdfium.FPDF_ClosePage(page)
  return picture
}

/** Rows begin at the lower edge and have a multiple of four bytes. */
function bmpOf(
  rows: Uint8Array,
  { width, height, stride }: { width: number; height: number; stride: number },
): Uint8Array<ArrayBuffer> {
  const rowBytes = Math.ceil((width * bytesPerPixel) / 4) * 4
  const bmp = new Uint8Array(bmpHeadBytes + rowBytes * height)
  const view = new DataView(bmp.buffer)
  bmp.set([0x42, 0x4d])
  view.setUint32(2, bmp.length, true)
  view.setUint32(10, bmpHeadBytes, true)
  view.setUint32(14, bmpHeadBytes - 14, true)
  view.setInt32(18, width, true)
  view.setInt32(22, height, true)
  view.setUint16(26, 1, true)
  view.setUint16(28, bytesPerPixel * 8, true)
  for (let row = 0; row < height; row++) {
    const from = row * stride
    bmp.set(
      rows.subarray(from, from + width * bytesPerPixel),
      bmpHeadBytes + (height - 1 - row) * rowBytes,
    )
  }
  return bmp
}
