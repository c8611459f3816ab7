import { mcpToolName } from '#hosted-tools/mcp/request.ts'
import { readEarlierResults, renderResults } from '#hosted-tools/web-search/results.ts'
import type { RequestItem } from '#inference/request.ts'
import { asRecord, isRecord } from '#lib/json.ts'
import type { TextSeal } from '#sealing/seals.ts'
import { announceTool } from './parse-content.ts'
import { readObject } from './read-object.ts'
import { serverToolResultBlock, toolUseBlock } from './schema/input-blocks.ts'

/**
 * Parses the calls of tools that the responding service ran itself, such as a web search; null for any
 * other block. The model gets each call with its result like one of its own tools. `pending`: the ids
 * of calls without a result so far. `seal`: of the results of our own web searches.
 */
export function parseServerTool(
  type: string,
  { block, path }: { block: unknown; path: string },
  { pending, seal }: { pending: Set<string>; seal: TextSeal },
): RequestItem[] | null {
  if (type === 'server_tool_use' || type === 'mcp_tool_use') {
    const { id, name, input = {} } = readObject(toolUseBlock, block, path)
    pending.add(id)
    const args = JSON.stringify(input)
    const server = type === 'mcp_tool_use' && isRecord(block) ? block['server_name'] : undefined
    // The name under which the model gets the tool.
    const called = typeof server === 'string' ? mcpToolName(server, name) : name
    return [{ type: 'tool-call', callId: id, name: called, form: 'function', arguments: args }]
  }
  if (!type.endsWith('_tool_result')) return null
  const { tool_use_id: callId, content } = readObject(serverToolResultBlock, block, path)
  const text = readSearch(content, seal) ?? flatten(content)
  const parts = [{ type: 'text' as const, text }]
  if (pending.delete(callId)) return [{ type: 'tool-result', callId, form: 'function', parts }]
  return text === '' ? [] : [{ type: 'message', role: 'assistant', parts }]
}

/** The results of a web search that the gateway ran; null for any other content. */
function readSearch(content: unknown, seal: TextSeal): string | null {
  if (!Array.isArray(content)) return null
  const results = content.map(asRecord)
  const texts = results.map(({ encrypted_content: sealed }) =>
    typeof sealed === 'string' ? seal.open(sealed) : null,
  )
  if (results.length === 0 || texts.includes(null)) return null
  return renderResults(
    readEarlierResults(results.map((each, at) => ({ ...each, text: texts[at] }))),
  )
}

/** The result of a server tool as text. */
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

/** Drops base64 and encrypted fields, which a model cannot read. */
function withoutPayloads(this: unknown, field: string, value: unknown): unknown {
  if (field.startsWith('encrypted_')) return undefined
  const isBase64 = field === 'data' && isRecord(this) && this['type'] === 'base64'
  return isBase64 ? undefined : value
}
