import { imageSizeOf } from './image-size.ts'
import type { ContentPart } from './request.ts'

type ImagePart = Extract<ContentPart, { type: 'image' }>
type FilePart = Extract<ContentPart, { type: 'file' }>

/** A token stands for so many pixels; larger images are made smaller before a model sees them. */
const pixelsPerToken = 750
const imageTokensMax = 1_600
/** An image whose size is not known, such as one behind a URL. */
const unknownImageTokens = 1_500
const smallImageTokens = 85
/** A file behind a URL: some pages. */
const unseenFileTokens = 1_500
/** Three quarters of base64 are data; text has about four bytes a token, a PDF or Word file more. */
const textFileCharsPerToken = 5.3
const binaryFileCharsPerToken = 20

/** What an image or a file probably costs; an image by its pixels, a file by its length. */
export function mediaTokens(part: ImagePart | FilePart): number {
  return part.type === 'image' ? imageTokens(part) : fileTokens(part)
}

function imageTokens({ url, detail }: ImagePart): number {
  if (detail === 'low') return smallImageTokens
  const size = imageSizeOf(url)
  if (size === null) return unknownImageTokens
  return Math.min(imageTokensMax, Math.ceil((size.width * size.height) / pixelsPerToken))
}

function fileTokens(part: FilePart): number {
  const data = part.data ?? (part.url?.startsWith('data:') ? part.url : null)
  if (data === null) return unseenFileTokens
  const isText = data.startsWith('data:text/')
  return data.length / (isText ? textFileCharsPerToken : binaryFileCharsPerToken)
}
