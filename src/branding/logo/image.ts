import { AppError } from '#lib/errors.ts'

/** A picture that may be shown to everybody. */
export type LogoImage = {
  readonly contentType: LogoType
  readonly content: Uint8Array
  /** In pixels; null for a drawing that does not say. */
  readonly width: number | null
  readonly height: number | null
  /** What was taken out of it. */
  readonly sanitized: readonly string[]
}

type LogoType = 'image/png' | 'image/webp' | 'image/svg+xml'

/** Inclusive. */
export const logoBytesMax = 524_288
/** Of a picture's width and of its height. */
const sideMax = 4_096

export function unsupportedType(): AppError {
  return new AppError(
    'unsupported_media_type',
    'A logo must be a PNG, a WebP, or an SVG in UTF-8 whose root is svg in the namespace http://www.w3.org/2000/svg.',
    { param: 'file', code: 'unsupported_image_type' },
  )
}

/** Of a picture that begins as one and goes on as something else. */
export function invalidImage(sentence: string): AppError {
  return new AppError('unprocessable', sentence, { param: 'file', code: 'invalid_image' })
}

export function checkSides(width: number, height: number): void {
  const isRight = (side: number) => side >= 1 && side <= sideMax
  if (isRight(width) && isRight(height)) return
  throw invalidImage(`A logo must have 1 to ${sideMax} pixels each way, not ${width} × ${height}.`)
}
