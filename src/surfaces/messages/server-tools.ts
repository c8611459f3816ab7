import type { RequestItem } from '#inference/request.ts'
import { isRecord } from '#lib/json.ts'
import { announceTool } from './parse-content.ts'
import { createReader } from './read-object.ts'
import { serverToolResultBlock, toolUseBlock } from './schema.ts'

const readUse = createReader(toolUseBlock)
const readResult = createReader(serverToolResultBlock)

/** Of features that are not offered here; a model would not get to see them anyway. */
const silentBlocks = ['container_upload', 'fallback', 'mcp_listing']

export function isSilentBlock(type: string): boolean {
  return silentBlocks.includes(type)
}

/**
 * Tools that ran inside of an earlier answer, at whoever gave it. A model gets to see each call with
 * its result like one of its own tools; a call that never had a result is left out.
 */
export type ServerTools = {
  /** The items of a block of such a tool; null: it is no such block. */
  take(type: string, block: unknown, path: string): RequestItem[] | null
  /** The items without the calls that had no result. */
  finish(items: readonly RequestItem[]): readonly RequestItem[]
}

export function createServerTools(): ServerTools {
  const unanswered = new Set<string>()

  const takeUse = (block: unknown, path: string): RequestItem[] => {
    const { id, name, input = {} } = readUse(block, path)
    unanswered.add(id)
    const args = JSON.stringify(input)
    return [{ type: 'tool-call', callId: id, name, form: 'function', arguments: args }]
  }
  const takeResult = (block: unknown, path: string): RequestItem[] => {
    const { tool_use_id: callId, content } = readResult(block, path)
    const text = flatten(content)
    const parts = [{ type: 'text' as const, text }]
    if (unanswered.delete(callId)) return [{ type: 'tool-result', callId, form: 'function', parts }]
    return text === '' ? [] : [{ type: 'message', role: 'assistant', parts }]
  }

  return {
    take(type, block, path) {
      if (type === 'server_tool_use' || type === 'mcp_tool_use') return takeUse(block, path)
      return type.endsWith('_tool_result') ? takeResult(block, path) : null
    },
    finish: (items) =>
      unanswered.size === 0
        ? items
        : items.filter((item) => item.type !== 'tool-call' || !unanswered.has(item.callId)),
  }
}

/** What such a tool gave, as a text. */
function flatten(content: unknown): string {
  if (typeof content === 'string') return content
  if (Array.isArray(content)) return content.map(flatten).join('\n')
  if (!isRecord(content)) return ''
  const { type, text, tool_name: toolName, tool_references: references } = content
  if (type === 'text' && typeof text === 'string') return text
  if (type === 'tool_reference' && typeof toolName === 'string') return announceTool(toolName)
  if (Array.isArray(references)) return flatten(references)
  return JSON.stringify(content, withoutPayloads)
}

/** Base64, and what only its maker can read, say nothing to a model. */
function withoutPayloads(this: unknown, field: string, value: unknown): unknown {
  if (field.startsWith('encrypted_')) return undefined
  const isBase64 = field === 'data' && isRecord(this) && this['type'] === 'base64'
  return isBase64 ? undefined : value
}
