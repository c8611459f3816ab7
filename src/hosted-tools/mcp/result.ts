import { isRecord, type JsonObject } from '#lib/json.ts'

/** What a tool gave, as the model reads it: its texts, and a word for everything else. */
export function readToolContent(content: readonly unknown[], structured: unknown): string {
  const texts = content.filter(isRecord).map(readBlock)
  if (texts.length === 0 && structured !== undefined) return JSON.stringify(structured)
  return texts.join('\n')
}

/** The text as far as there is room for it. */
export function cutText(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text
  return `${text.slice(0, charsMax)}\n[Cut off: the output is longer than ${charsMax} characters.]`
}

function readBlock(block: JsonObject): string {
  const { type, text, mimeType } = block
  switch (type) {
    case 'text':
      return String(text)
    case 'image':
    case 'audio':
      return `[${type} of type ${String(mimeType)}, not shown]`
    case 'resource':
      return readResource(isRecord(block['resource']) ? block['resource'] : {})
    case 'resource_link':
      return `[resource ${String(block['name'])}: ${String(block['uri'])}]`
    default:
      return `[content of type ${String(type)}, not shown]`
  }
}

function readResource({ uri, text }: JsonObject): string {
  return typeof text === 'string' ? text : `[resource ${String(uri)}, not shown]`
}
