import type { RequestItem } from '#inference/request.ts'
import { parseContent, parsePart, unknownBlock } from './parse-content.ts'
import { parseRedactedThinking, parseThinking } from './parse-thinking.ts'
import { badField, createReader, readType } from './read-object.ts'
import type { Content, Reading } from './reading.ts'
import { compactionBlock, toolUseBlock } from './schema.ts'
import { isSilentBlock } from './server-tools.ts'
import { fromToolUseId } from './tool-id.ts'

const readToolUse = createReader(toolUseBlock)
const readCompaction = createReader(compactionBlock)

/** Adds the items of an assistant message, in the order of its blocks. */
export function readAssistantTurn(reading: Reading, content: Content, path: string): void {
  if (typeof content === 'string') {
    for (const part of parseContent(content, path))
      if ('text' in part) say(reading, part.text, true)
    return
  }
  for (const [index, block] of content.entries()) {
    readBlock(reading, block, { path: `${path}.${index}`, isFirst: index === 0 })
  }
}

function readBlock(
  reading: Reading,
  block: unknown,
  { path, isFirst }: { path: string; isFirst: boolean },
): void {
  const { items, serverTools, leftOut } = reading
  const type = readType(block, path)
  if (isSilentBlock(type)) {
    leftOut.add(type)
    return
  }
  const own = readOwnBlock(reading, type, { block, path }) ?? serverTools.take(type, block, path)
  if (own !== null) {
    items.push(...own)
    return
  }
  if (type === 'tool_result') {
    throw badField(`${path}.type`, 'is "tool_result", which only a user message can hold')
  }
  for (const part of parsePart(type, block, path) ?? refuse(type, path)) {
    if (!('text' in part))
      throw badField(path, `is ${part.type} content, which only a user can give`)
    say(reading, part.text, isFirst)
  }
}

function refuse(type: string, path: string): never {
  throw unknownBlock(type, path)
}

/** What only an assistant says, beside text; null: it is something else. */
function readOwnBlock(
  { seal, calls }: Reading,
  type: string,
  { block, path }: { block: unknown; path: string },
): RequestItem[] | null {
  switch (type) {
    case 'thinking':
    case 'redacted_thinking': {
      const parse = type === 'thinking' ? parseThinking : parseRedactedThinking
      const item = parse(block, path, seal)
      return item === null ? [] : [item]
    }
    case 'tool_use': {
      const { id, name, input = {} } = readToolUse(block, path)
      calls.open(id, `${path}.id`)
      const args = JSON.stringify(input)
      const callId = fromToolUseId(id)
      return [{ type: 'tool-call', callId, name, form: 'function', arguments: args }]
    }
    // What was said before, as its author summed it up.
    case 'compaction': {
      const { content: text = '' } = readCompaction(block, path)
      const parts = [{ type: 'text' as const, text }]
      return text === '' ? [] : [{ type: 'message', role: 'assistant', parts }]
    }
    default:
      return null
  }
}

/** Neighbouring texts are pieces of one: an answer with citations is cut up by them. */
function say({ items }: Reading, text: string, isNew: boolean): void {
  const last = items.at(-1)
  const [part] = last?.type === 'message' && last.role === 'assistant' ? last.parts : []
  const before = !isNew && part?.type === 'text' ? part.text : null
  if (before !== null) items.pop()
  const parts = [{ type: 'text' as const, text: (before ?? '') + text }]
  items.push({ type: 'message', role: 'assistant', parts })
}
