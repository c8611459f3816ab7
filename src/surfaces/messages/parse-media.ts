import { quote } from '#api/read-object.ts'
import type { ContentPart, StoredFile } from '#inference/request.ts'
import type { JsonObject } from '#lib/json.ts'
import { isUuid } from '#lib/uuid.ts'
import { classifyMediaUrl } from '#surfaces/media-url.ts'
import { invalidField, readObject, readType, unknownPart } from './read-object.ts'
import {
  anyBase64Source,
  contentSource,
  documentBlock,
  fileSource,
  imageBlock,
  imageTypes,
  textSource,
  urlSource,
} from './schema/input-blocks.ts'

/** Before base64 encoding. */
const imageBytesMax = 10_485_760
/** A base64 character holds six bits. */
const bytesPerBase64Char = 3 / 4

/** Parses a block of the type `image`. */
export function parseImage(value: unknown, path: string): ContentPart {
  const { source } = readObject(imageBlock, value, path)
  const at = `${path}.source`
  const type = readType(source, at)
  if (type === 'url') return { type: 'image', url: readPublicUrl(source, at), detail: null }
  if (type === 'file')
    return { type: 'image', url: '', detail: null, stored: readStored(source, at) }
  if (type !== 'base64') throw unknownSource(type, at)
  const { media_type: mediaType, data } = readObject(anyBase64Source, source, at)
  if (!imageTypes.some((allowed) => allowed === mediaType)) {
    throw unknownPart(`${at}.media_type`, `must be one of ${imageTypes.join(', ')}`)
  }
  validateBase64(data, at)
  const bytes = Math.floor(data.length * bytesPerBase64Char)
  if (bytes > imageBytesMax) {
    throw invalidField(`${at}.data`, `image exceeds the maximum: ${bytes} bytes > ${imageBytesMax}`)
  }
  return { type: 'image', url: `data:${mediaType};base64,${data}`, detail: null }
}

/** Parses the content blocks of a document. */
export type ParseBlocks = (content: string | readonly unknown[], path: string) => ContentPart[]

type Heading = { title?: string; context?: string }

/** Parses a block of the type `document`: a file, or text below its title and context. */
export function parseDocument(
  value: unknown,
  path: string,
  parseBlocks: ParseBlocks,
): ContentPart[] {
  const { source, ...heading } = readObject(documentBlock, value, path)
  const at = `${path}.source`
  const type = readType(source, at)
  switch (type) {
    case 'text':
      return withHeading([{ type: 'text', text: readObject(textSource, source, at).data }], heading)
    case 'content':
      return withHeading(
        parseBlocks(readObject(contentSource, source, at).content, `${at}.content`),
        heading,
      )
    case 'base64':
      return parseFile(source, at, heading)
    case 'file': {
      const stored = readStored(source, at)
      return [
        ...contextOf(heading),
        { type: 'file', data: null, url: null, filename: null, stored },
      ]
    }
    case 'url': {
      const url = readPublicUrl(source, at)
      return [...contextOf(heading), { type: 'file', data: null, url, filename: nameOf(heading) }]
    }
    default:
      throw unknownSource(type, at)
  }
}

function parseFile(source: JsonObject, at: string, heading: Heading): ContentPart[] {
  const { media_type: mediaType, data } = readObject(anyBase64Source, source, at)
  validateBase64(data, at)
  const isPdf = mediaType === 'application/pdf'
  const filename = isPdf ? (nameOf(heading) ?? 'document.pdf') : heading.title || 'document'
  const dataUrl = `data:${mediaType};base64,${data}`
  return [...contextOf(heading), { type: 'file', data: dataUrl, url: null, filename }]
}

/** Puts the heading into the first text part, so that a document of text stays one part. */
function withHeading(parts: readonly ContentPart[], { title, context }: Heading): ContentPart[] {
  const lines = [
    ...(title ? [`Document: ${title}`] : []),
    ...(context ? [`Context: ${context}`] : []),
  ]
  if (lines.length === 0) return [...parts]
  const [first, ...others] = parts
  const heading = lines.join('\n')
  if (first?.type !== 'text') return [{ type: 'text', text: heading }, ...parts]
  return [{ type: 'text', text: `${heading}\n\n${first.text}` }, ...others]
}

function contextOf({ context }: Heading): ContentPart[] {
  return context ? [{ type: 'text', text: `Context: ${context}` }] : []
}

function nameOf({ title }: Heading): string | null {
  if (!title) return null
  return /\.pdf$/i.test(title) ? title : `${title}.pdf`
}

function readPublicUrl(source: JsonObject, at: string): string {
  const { url } = readObject(urlSource, source, at)
  const path = `${at}.url`
  switch (classifyMediaUrl(url)) {
    case 'public':
      return url
    case 'private':
      throw invalidField(path, 'leads to an address that is not public')
    case 'malformed':
      throw invalidField(path, 'must be a URL that begins with https:// or http://')
  }
}

/** Checks only the first characters, which suffices to detect data URLs and other formats. */
function validateBase64(data: string, at: string): void {
  if (/^[A-Za-z0-9+/\s]{8}|^[A-Za-z0-9+/=\s]{1,8}$/.test(data)) return
  throw invalidField(`${at}.data`, 'must be base64 without a prefix')
}

/** The id of a file of this gateway; one of the vendor is known to its upstreams only. */
function readStored(source: JsonObject, at: string): StoredFile {
  const { file_id: id } = readObject(fileSource, source, at)
  const path = `${at}.file_id`
  if (isUuid(id)) return { id, path }
  throw unknownPart(path, `is ${quote(id)}, but no file has this id`)
}

function unknownSource(type: string, at: string) {
  return unknownPart(`${at}.type`, `is ${quote(type)}, which is not supported in this block`)
}
