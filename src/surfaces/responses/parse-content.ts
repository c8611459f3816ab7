import { quote } from '#api/read-object.ts'
import type { ContentPart } from '#inference/request.ts'
import { classifyMediaUrl } from '#surfaces/media-url.ts'
import { invalidField, readObject, readType } from './read-object.ts'
import { filePart, imagePart, refusalPart, textPart } from './schema/content.ts'

/** Parses the content of a message or of a tool output. A string is one part. */
export function parseContent(content: string | readonly unknown[], path: string): ContentPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return content.map((part, index) => parsePart(part, `${path}[${index}]`))
}

/** Unlike an unknown item, an unknown part is refused: it is part of what the client says. */
function parsePart(value: unknown, path: string): ContentPart {
  const type = readType(value, path)
  switch (type) {
    case 'input_text':
    case 'output_text':
    case 'text':
      return { type: 'text', text: readObject(textPart, value, path).text }
    case 'refusal':
      return { type: 'refusal', text: readObject(refusalPart, value, path).refusal }
    case 'input_image':
      return parseImage(value, path)
    case 'input_file':
      return parseFile(value, path)
    default:
      throw invalidField(`${path}.type`, `is ${quote(type)}, which is not supported`)
  }
}

function parseImage(value: unknown, path: string): ContentPart {
  const { image_url: url, file_id: id, detail = null } = readObject(imagePart, value, path)
  if (id !== undefined) {
    return { type: 'image', url: '', detail, stored: { id, path: `${path}.file_id` } }
  }
  if (url === undefined) throw invalidField(path, 'must have image_url or file_id')
  validateUrl(url, `${path}.image_url`)
  return { type: 'image', url, detail }
}

function parseFile(value: unknown, path: string): ContentPart {
  const {
    file_data: data = null,
    file_url: url = null,
    file_id: id,
    filename = null,
  } = readObject(filePart, value, path)
  if (id !== undefined) {
    const stored = { id, path: `${path}.file_id` }
    return { type: 'file', data: null, url: null, filename, stored }
  }
  if (data === null && url === null) {
    throw invalidField(path, 'must have file_data, file_url or file_id')
  }
  if (url !== null) validateUrl(url, `${path}.file_url`)
  return { type: 'file', data, url, filename }
}

/** A data URL contains the data; any other URL is fetched by the upstream, from inside its network. */
function validateUrl(url: string, path: string): void {
  if (/^data:/i.test(url)) return
  const kind = classifyMediaUrl(url)
  if (kind === 'private') throw invalidField(path, 'leads to an address that is not public')
  if (kind === 'malformed') throw invalidField(path, 'must be an http, https or data URL')
}
