import { AppError } from '#lib/errors.ts'
import { type LogoImage, unsupportedImageType } from './image.ts'
import { sanitizeSvg } from './svg/sanitize.ts'

/** Of the width and of the height. */
const sidePixelsMax = 4_096

/**
 * Detects the image type from the bytes, not the file name, and sanitises an SVG. Throws an `AppError`:
 * `unsupported_image_type`, `invalid_image` or `invalid_svg`.
 */
export async function inspectLogo(bytes: Uint8Array): Promise<LogoImage> {
  const content = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (content.subarray(0, pngSignature.length).equals(pngSignature)) {
    if (!isCompletePng(content)) throw damagedImage('PNG')
    return { contentType: 'image/png', content, ...(await decode(content, 'PNG')), sanitized: [] }
  }
  if (content.toString('latin1', 0, 4) === 'RIFF' && content.toString('latin1', 8, 12) === 'WEBP') {
    if (!isCompleteWebp(content)) throw damagedImage('WebP')
    return { contentType: 'image/webp', content, ...(await decode(content, 'WebP')), sanitized: [] }
  }
  const { svg, ...rest } = sanitizeSvg(decodeUtf8(content))
  return { contentType: 'image/svg+xml', content: Buffer.from(svg), ...rest }
}

/** Reads the size from the header, then decodes all pixels on another thread. */
async function decode(content: Buffer, type: 'PNG' | 'WebP') {
  const image = new Bun.Image(content, { maxPixels: sidePixelsMax ** 2 })
  const { width, height } = await image.metadata().catch((error: Error & { code?: string }) => {
    throw error.code === 'ERR_IMAGE_TOO_MANY_PIXELS' ? oversizedImage() : damagedImage(type)
  })
  if (width > sidePixelsMax || height > sidePixelsMax) throw oversizedImage()
  // Bun.Image cannot decode the frames of an animation.
  if (type === 'PNG' || !isAnimatedWebp(content)) {
    const thumbnail = image.resize(1, 1, { filter: 'nearest' })
    await thumbnail.bytes().catch(() => {
      throw damagedImage(type)
    })
  }
  return { width, height }
}

const pngSignature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

// The decoder ignores checksums, a missing end and appended data, so these are checked here.

/** The chunks have valid checksums and end with IEND at the end of the file. */
function isCompletePng(bytes: Buffer): boolean {
  for (let offset = pngSignature.length; offset + 12 <= bytes.length; ) {
    const end = offset + 12 + bytes.readUInt32BE(offset)
    if (end > bytes.length) return false
    const checksum = Bun.hash.crc32(bytes.subarray(offset + 4, end - 4))
    if (checksum !== bytes.readUInt32BE(end - 4)) return false
    if (bytes.toString('latin1', offset + 4, offset + 8) === 'IEND') return end === bytes.length
    offset = end
  }
  return false
}

/** The RIFF length and the last chunk, padded to an even length, end at the end of the file. */
function isCompleteWebp(bytes: Buffer): boolean {
  let offset = 12
  while (offset + 8 <= bytes.length) {
    const length = bytes.readUInt32LE(offset + 4)
    offset += 8 + length + (length % 2)
  }
  return offset === bytes.length && bytes.readUInt32LE(4) + 8 === bytes.length
}

function isAnimatedWebp(bytes: Buffer): boolean {
  const isFlagged =
    bytes.toString('latin1', 12, 16) === 'VP8X' && (bytes.readUInt8(20) & 0x02) !== 0
  return isFlagged && bytes.includes('ANMF')
}

function damagedImage(type: string): AppError {
  return invalidImage(`The ${type} is damaged, incomplete or followed by other data.`)
}

function oversizedImage(): AppError {
  return invalidImage(`A logo must have at most ${sidePixelsMax} × ${sidePixelsMax} pixels.`)
}

function invalidImage(sentence: string): AppError {
  return new AppError('unprocessable', sentence, { param: 'file', code: 'invalid_image' })
}

/** A byte-order mark is dropped. */
function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw unsupportedImageType()
  }
}
