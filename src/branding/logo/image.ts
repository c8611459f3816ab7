import { AppError } from '#lib/errors.ts'

/** A validated image that is safe to serve. */
export type LogoImage = {
  readonly contentType: 'image/png' | 'image/webp' | 'image/svg+xml'
  readonly content: Uint8Array
  /** In pixels; null for an SVG without a size. */
  readonly width: number | null
  readonly height: number | null
  /** Kinds of SVG content that were removed. */
  readonly sanitized: readonly string[]
}

/** Inclusive. */
export const logoBytesMax = 524_288
/** Shown until an administrator uploads a logo. */
const defaultSvg =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" width="64" height="64" role="img">' +
  '<title>Sluice</title>' +
  '<path fill="#2557d6" d="M6 8h10v48H6zM48 8h10v48H48zM16 8h32v14H16z"/>' +
  '<path fill="none" stroke="#4f8df7" stroke-width="4" stroke-linecap="round" d="M20 34q6-6 12 0t12 0M20 48q6-6 12 0t12 0"/>' +
  '</svg>'

export const defaultLogo: LogoImage = {
  contentType: 'image/svg+xml',
  content: Buffer.from(defaultSvg),
  width: 64,
  height: 64,
  sanitized: [],
}

export function unsupportedImageType(): AppError {
  return new AppError(
    'unsupported_media_type',
    'A logo must be a PNG, a WebP, or an SVG in UTF-8 whose root is svg in the namespace http://www.w3.org/2000/svg.',
    { param: 'file', code: 'unsupported_image_type' },
  )
}

export function invalidSvg(sentence: string): AppError {
  return new AppError('unprocessable', `${sentence.replace(/\.$/, '')}.`, {
    param: 'file',
    code: 'invalid_svg',
  })
}
