import type { ContentPart } from '#inference/request.ts'
import type { JsonObject } from '#lib/json.ts'
import { classifyMediaUrl } from '#surfaces/media-url.ts'
import { quote } from '#surfaces/read-object.ts'
import { badField, createReader, readType } from './read-object.ts'
import {
  base64Source,
  contentSource,
  documentBlock,
  mediaBlock,
  textSource,
  urlSource,
} from './schema.ts'

const readMedia = createReader(mediaBlock)
const readDocument = createReader(documentBlock)
const readBase64 = createReader(base64Source)
const readText = createReader(textSource)
const readContent = createReader(contentSource)
const readUrl = createReader(urlSource)

const imageTypes = ['image/jpeg', 'image/png', 'image/gif', 'image/webp']
/** As it is sent, without the base64 around it. */
const imageBytesMax = 10_485_760
/** Six bits a character. */
const bytesPerBase64Char = 3 / 4

/** A block of type `image`. */
export function parseImage(value: unknown, path: string): ContentPart {
  const { source } = readMedia(value, path)
  const at = `${path}.source`
  const type = readType(source, at)
  if (type === 'url') return { type: 'image', url: readPublicUrl(source, at), detail: null }
  if (type !== 'base64') throw unknownSource(type, at)
  const { media_type: mediaType, data } = readBase64(source, at)
  if (!imageTypes.includes(mediaType)) {
    throw badField(`${at}.media_type`, `must be one of ${imageTypes.join(', ')}`)
  }
  checkBase64(data, at)
  const bytes = Math.floor(data.length * bytesPerBase64Char)
  if (bytes > imageBytesMax) {
    throw badField(`${at}.data`, `image exceeds the maximum: ${bytes} bytes > ${imageBytesMax}`)
  }
  return { type: 'image', url: `data:${mediaType};base64,${data}`, detail: null }
}

/** Reads what a document holds where it is made of blocks. */
export type ReadBlocks = (content: string | readonly unknown[], path: string) => ContentPart[]

type Heading = { title?: string; context?: string }

/** A block of type `document`: a file, or its text below its title and context. */
export function parseDocument(value: unknown, path: string, readBlocks: ReadBlocks): ContentPart[] {
  const { source, ...heading } = readDocument(value, path)
  const at = `${path}.source`
  const type = readType(source, at)
  switch (type) {
    case 'text':
      return withHeading([{ type: 'text', text: readText(source, at).data }], heading)
    case 'content':
      return withHeading(readBlocks(readContent(source, at).content, `${at}.content`), heading)
    case 'base64':
      return parseFile(source, at, heading)
    case 'url': {
      const url = readPublicUrl(source, at)
      return [...contextOf(heading), { type: 'file', data: null, url, filename: nameOf(heading) }]
    }
    default:
      throw unknownSource(type, at)
  }
}

function parseFile(source: JsonObject, at: string, heading: Heading): ContentPart[] {
  const { media_type: mediaType, data } = readBase64(source, at)
  if (mediaType !== 'application/pdf') {
    throw badField(`${at}.media_type`, 'must be application/pdf; send other text as source text')
  }
  checkBase64(data, at)
  const filename = nameOf(heading) ?? 'document.pdf'
  const dataUrl = `data:${mediaType};base64,${data}`
  return [...contextOf(heading), { type: 'file', data: dataUrl, url: null, filename }]
}

/** The first text comes right below the heading, so that a text alone stays one part. */
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
  const { url } = readUrl(source, at)
  const path = `${at}.url`
  switch (classifyMediaUrl(url)) {
    case 'public':
      return url
    case 'private':
      throw badField(path, 'leads to an address that is not public')
    case 'malformed':
      throw badField(path, 'must be a URL that begins with https:// or http://')
  }
}

/** Only the beginning, which tells whether it is base64 at all, and nothing else. */
function checkBase64(data: string, at: string): void {
  if (/^[A-Za-z0-9+/\s]{8}|^[A-Za-z0-9+/=\s]{1,8}$/.test(data)) return
  throw badField(`${at}.data`, 'must be base64, and nothing in front of it')
}

function unknownSource(type: string, at: string) {
  return type === 'file'
    ? badField(`${at}.type`, 'is "file", but there are no files here; send base64, or a url')
    : badField(`${at}.type`, `is ${quote(type)}, which is not a source of this block`)
}
