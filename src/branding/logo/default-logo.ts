import type { LogoImage } from './image.ts'

/** A gate with water running through it: what is shown until somebody has set a logo. */
const drawing =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" width="64" height="64" role="img">' +
  '<title>Sluice</title>' +
  '<path fill="#2557d6" d="M6 8h10v48H6zM48 8h10v48H48zM16 8h32v14H16z"/>' +
  '<path fill="none" stroke="#4f8df7" stroke-width="4" stroke-linecap="round" d="M20 34q6-6 12 0t12 0M20 48q6-6 12 0t12 0"/>' +
  '</svg>'

export const defaultLogo: LogoImage = {
  contentType: 'image/svg+xml',
  content: Buffer.from(drawing),
  width: 64,
  height: 64,
  sanitized: [],
}
