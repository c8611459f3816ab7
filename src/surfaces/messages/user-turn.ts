import type { RequestItem } from '#inference/request.ts'
import type { CallBook } from './call-book.ts'
import { parseContent, parsePart, unknownBlock } from './parse-content.ts'
import { badField, createReader, readType } from './read-object.ts'
import type { Content, Reading, UserTurn } from './reading.ts'
import { toolResultBlock } from './schema.ts'
import { isSilentBlock } from './server-tools.ts'
import { fromToolUseId } from './tool-id.ts'

const readToolResult = createReader(toolResultBlock)

export function emptyUserTurn(): UserTurn {
  return { results: [], parts: [] }
}

/** The results of tools, whatever stood before them, and then the rest. */
export function itemsOfUserTurn({ results, parts }: UserTurn): RequestItem[] {
  return parts.length === 0 ? results : [...results, { type: 'message', role: 'user', parts }]
}

const assistantBlocks = ['tool_use', 'thinking', 'redacted_thinking', 'server_tool_use']

/** Adds the content of a user message to the turn that is open. */
export function readUserTurn(
  { user, calls, leftOut }: Reading,
  content: Content,
  path: string,
): void {
  if (typeof content === 'string') {
    user.parts.push(...parseContent(content, path))
    return
  }
  for (const [index, block] of content.entries()) {
    const at = `${path}.${index}`
    const type = readType(block, at)
    if (type === 'tool_result') {
      user.results.push(parseToolResult(block, at, calls))
    } else if (isSilentBlock(type)) {
      leftOut.add(type)
    } else {
      const parts = parsePart(type, block, at)
      if (parts === null) throw misplaced(type, at)
      user.parts.push(...parts)
    }
  }
}

function parseToolResult(block: unknown, path: string, calls: CallBook): RequestItem {
  const { tool_use_id: id, content = '', is_error: isError } = readToolResult(block, path)
  calls.answer(id, `${path}.tool_use_id`)
  const parts = parseContent(content, `${path}.content`)
  const callId = fromToolUseId(id)
  return { type: 'tool-result', callId, form: 'function', parts, ...(isError ? { isError } : {}) }
}

function misplaced(type: string, path: string) {
  if (!assistantBlocks.includes(type)) return unknownBlock(type, path)
  return badField(`${path}.type`, `is "${type}", which only an assistant message can hold`)
}
