import { type FilePart, unreadableFile } from '#inference/message-parts.ts'
import type { ContentPart } from '#inference/request.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { assertNever } from '#lib/assert.ts'
import { type DataUrl, readDataUrl } from '#lib/data-url.ts'
import type { WireBlock } from './wire.ts'

/** The parts of a message as blocks, without empty texts, which the protocol rejects. */
export function encodeParts(parts: readonly ContentPart[], quirks: UpstreamQuirks): WireBlock[] {
  return parts.flatMap((part) => {
    switch (part.type) {
      case 'text':
      case 'refusal':
        return encodeText(part.text)
      case 'image':
        return encodeImage(part.url)
      case 'file':
        return encodeFile(part, quirks)
      default:
        return assertNever(part)
    }
  })
}

export function encodeText(text: string): WireBlock[] {
  return text === '' ? [] : [{ type: 'text', text }]
}

function encodeImage(url: string): WireBlock[] {
  const data = readDataUrl(url)
  if (data === null) return [{ type: 'image', source: { type: 'url', url } }]
  const { mimeType, base64 } = data
  return [{ type: 'image', source: { type: 'base64', media_type: mimeType, data: base64 } }]
}

function encodeFile(part: FilePart, quirks: UpstreamQuirks): WireBlock[] {
  const title = part.filename === null ? {} : { title: part.filename }
  const data = readDataUrl(part.data ?? part.url ?? '') ?? readBareData(part)
  if (data?.mimeType.startsWith('text/')) {
    const text = Buffer.from(data.base64, 'base64').toString('utf8')
    if (!quirks.files) return encodeText(part.filename ? `${part.filename}:\n${text}` : text)
    const source = { type: 'text', media_type: 'text/plain', data: text }
    return [{ type: 'document', source, ...title }]
  }
  if (!quirks.files) throw unreadableFile(part, quirks.files)
  if (data !== null) {
    const source = { type: 'base64', media_type: data.mimeType, data: data.base64 }
    return [{ type: 'document', source, ...title }]
  }
  if (part.url === null) throw unreadableFile(part, quirks.files)
  return [{ type: 'document', source: { type: 'url', url: part.url }, ...title }]
}

/** Data without a media type is a PDF, the file type of the protocol. */
function readBareData({ data }: FilePart): DataUrl | null {
  return data === null || data === '' ? null : { mimeType: 'application/pdf', base64: data }
}
