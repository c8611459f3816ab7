import { type LogoImage, unsupportedType } from './image.ts'
import { isPng, readPng } from './png.ts'
import { readSvg } from './svg/read-svg.ts'
import { isWebp, readWebp } from './webp.ts'

/**
 * The picture that these bytes are, whatever they are called; a drawing without what could act or
 * load. Throws an `AppError`: `unsupported_image_type`, `invalid_image` or `invalid_svg`.
 */
export function inspectLogo(bytes: Uint8Array): LogoImage {
  const content = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (isPng(content)) {
    return { contentType: 'image/png', content, ...readPng(content), sanitized: [] }
  }
  if (isWebp(content)) {
    return { contentType: 'image/webp', content, ...readWebp(content), sanitized: [] }
  }
  const text = decodeText(content)
  if (text === null) throw unsupportedType()
  const { drawing, ...rest } = readSvg(text)
  return { contentType: 'image/svg+xml', content: Buffer.from(drawing), ...rest }
}

/** A mark at the beginning that says that it is UTF-8 is no part of the text. */
function decodeText(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}
