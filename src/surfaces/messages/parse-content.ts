import type { ContentPart } from '#inference/request.ts'
import { quote } from '#surfaces/read-object.ts'
import { parseDocument, parseImage } from './parse-media.ts'
import { badField, createReader, readType } from './read-object.ts'
import { searchResultBlock, textBlock, toolReferenceBlock } from './schema.ts'

const readText = createReader(textBlock)
const readSearchResult = createReader(searchResultBlock)
const readReference = createReader(toolReferenceBlock)

/** The content of a user message or of a tool's result; texts that are empty say nothing. */
export function parseContent(content: string | readonly unknown[], path: string): ContentPart[] {
  if (typeof content === 'string') return textParts(content)
  return content.flatMap((block, index) => {
    const at = `${path}.${index}`
    const type = readType(block, at)
    const parts = parsePart(type, block, at)
    if (parts === null) throw unknownBlock(type, at)
    return parts
  })
}

/** One block as parts, or null for a block that is not content of its own. */
export function parsePart(type: string, block: unknown, path: string): ContentPart[] | null {
  switch (type) {
    case 'text':
      return textParts(readText(block, path).text)
    case 'image':
      return [parseImage(block, path)]
    case 'document':
      return parseDocument(block, path, parseContent)
    case 'search_result':
      return parseSearchResult(block, path)
    case 'tool_reference':
      return textParts(announceTool(readReference(block, path).tool_name))
    case 'browser_state':
      return textParts(JSON.stringify(block))
    default:
      return null
  }
}

/** What a model reads in place of a reference to a tool that it may call from now on. */
export function announceTool(name: string): string {
  return `The tool ${name} can be called now.`
}

/** The content of what takes nothing but text. */
export function parseTexts(content: string | readonly unknown[], path: string): string[] {
  if (typeof content === 'string') return content === '' ? [] : [content]
  const texts = content.map((block, index) => {
    const at = `${path}.${index}`
    const type = readType(block, at)
    if (type !== 'text') throw badField(`${at}.type`, `is ${quote(type)}, but only text goes here`)
    return readText(block, at).text
  })
  return texts.filter((text) => text !== '')
}

export function unknownBlock(type: string, path: string) {
  return badField(`${path}.type`, `is ${quote(type)}, which is not a block that goes here`)
}

function parseSearchResult(block: unknown, path: string): ContentPart[] {
  const { source, title, content } = readSearchResult(block, path)
  const texts = parseTexts(content, `${path}.content`)
  return textParts([`Source: ${source}\nTitle: ${title}`, ...texts].join('\n\n'))
}

function textParts(text: string): ContentPart[] {
  return text === '' ? [] : [{ type: 'text', text }]
}
