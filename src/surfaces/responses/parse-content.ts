import type { ContentPart } from '#inference/request.ts'
import { classifyMediaUrl } from '#surfaces/media-url.ts'
import { quote } from '#surfaces/read-object.ts'
import { badField, createReader, readType } from './read-object.ts'
import { filePart, imagePart, refusalPart, textPart } from './schema.ts'

const readText = createReader(textPart)
const readRefusal = createReader(refusalPart)
const readImage = createReader(imagePart)
const readFile = createReader(filePart)

/** The content of a message or of a tool's output; a text is one part. */
export function parseContent(content: string | readonly unknown[], path: string): ContentPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return content.map((part, index) => parsePart(part, `${path}[${index}]`))
}

/** An unknown part is refused where an unknown item is skipped: it is what the caller says. */
function parsePart(value: unknown, path: string): ContentPart {
  const type = readType(value, path)
  switch (type) {
    case 'input_text':
    case 'output_text':
    case 'text':
      return { type: 'text', text: readText(value, path).text }
    case 'refusal':
      return { type: 'refusal', text: readRefusal(value, path).refusal }
    case 'input_image':
      return parseImage(value, path)
    case 'input_file':
      return parseFile(value, path)
    default:
      throw badField(`${path}.type`, `is ${quote(type)}, which is not offered`)
  }
}

function parseImage(value: unknown, path: string): ContentPart {
  const image = readImage(value, path)
  refuseFileId(image.file_id, path)
  if (image.image_url === undefined) throw badField(`${path}.image_url`, 'is required')
  validateUrl(image.image_url, `${path}.image_url`)
  return { type: 'image', url: image.image_url, detail: image.detail ?? null }
}

function parseFile(value: unknown, path: string): ContentPart {
  const file = readFile(value, path)
  refuseFileId(file.file_id, path)
  const { file_data: data = null, file_url: url = null, filename = null } = file
  if (data === null && url === null) {
    throw badField(path, 'must have file_data or file_url')
  }
  if (url !== null) validateUrl(url, `${path}.file_url`)
  return { type: 'file', data, url, filename }
}

/** Data URLs are sent along; any other is fetched by the upstream, inside its own network. */
function validateUrl(url: string, path: string): void {
  if (/^data:/i.test(url)) return
  const kind = classifyMediaUrl(url)
  if (kind === 'private') throw badField(path, 'leads to an address that is not public')
  if (kind === 'malformed') throw badField(path, 'must be an http, https or data URL')
}

function refuseFileId(fileId: string | undefined, path: string): void {
  if (fileId === undefined) return
  throw badField(`${path}.file_id`, 'is not offered yet; send the data itself')
}
