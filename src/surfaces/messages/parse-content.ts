import { quote } from '#api/read-object.ts'
import type { ContentPart } from '#inference/request.ts'
import { parseDocument, parseImage } from './parse-media.ts'
import { readObject, readType, unknownPart } from './read-object.ts'
import { searchResultBlock, textBlock, toolReferenceBlock } from './schema/input-blocks.ts'

/** Parses the content of a user message or of a tool result. Empty texts are ignored. */
export function parseContent(content: string | readonly unknown[], path: string): ContentPart[] {
  if (typeof content === 'string') return textParts(content)
  return content.flatMap((block, index) => {
    const at = `${path}.${index}`
    const type = readType(block, at)
    const parts = parsePart(type, block, at)
    if (parts === null) throw unsupportedBlock(type, at)
    return parts
  })
}

/** Parses one content block; null if the type is not allowed as content. */
export function parsePart(type: string, block: unknown, path: string): ContentPart[] | null {
  switch (type) {
    case 'text':
      return textParts(readObject(textBlock, block, path).text)
    case 'image':
      return [parseImage(block, path)]
    case 'document':
      return parseDocument(block, path, parseContent)
    case 'search_result':
      return parseSearchResult(block, path)
    case 'tool_reference':
      return textParts(announceTool(readObject(toolReferenceBlock, block, path).tool_name))
    case 'browser_state':
      return textParts(JSON.stringify(block))
    default:
      return null
  }
}

/** The text that replaces a reference to a deferred tool for the model. */
export function announceTool(name: string): string {
  return `The tool ${name} can be called now.`
}

/** Parses content that allows only text. */
export function parseTexts(content: string | readonly unknown[], path: string): string[] {
  if (typeof content === 'string') return content === '' ? [] : [content]
  const texts = content.map((block, index) => {
    const at = `${path}.${index}`
    const type = readType(block, at)
    if (type !== 'text')
      throw unknownPart(`${at}.type`, `is ${quote(type)}, but only text is allowed here`)
    return readObject(textBlock, block, at).text
  })
  return texts.filter((text) => text !== '')
}

export function unsupportedBlock(type: string, path: string) {
  return unknownPart(`${path}.type`, `is ${quote(type)}, which is not allowed here`)
}

function parseSearchResult(block: unknown, path: string): ContentPart[] {
  const { source, title, content } = readObject(searchResultBlock, block, path)
  const texts = parseTexts(content, `${path}.content`)
  return textParts([`Source: ${source}\nTitle: ${title}`, ...texts].join('\n\n'))
}

function textParts(text: string): ContentPart[] {
  return text === '' ? [] : [{ type: 'text', text }]
}
