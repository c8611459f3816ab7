import { quote } from '#api/read-object.ts'
import type { ContentPart } from '#inference/request.ts'
import { asRecord } from '#lib/json.ts'
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
  refuseFileId(value, path)
  const { image_url: url, detail = null } = readObject(imagePart, value, path)
  validateUrl(url, `${path}.image_url`)
  return { type: 'image', url, detail }
}

function parseFile(value: unknown, path: string): ContentPart {
  refuseFileId(value, path)
  const {
    file_data: data = null,
    file_url: url = null,
    filename = null,
  } = readObject(filePart, value, path)
  if (data === null && url === null) {
    throw invalidField(path, 'must have file_data or file_url')
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

function refuseFileId(value: unknown, path: string): void {
  if ((asRecord(value)['file_id'] ?? null) === null) return
  throw invalidField(`${path}.file_id`, 'is not supported; send the data itself')
}
