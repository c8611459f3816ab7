import { newId } from '#lib/id.ts'
import type { JsonObject } from '#lib/json.ts'
import type { StoredItem } from '#responses/response.ts'

const idPrefixes: Readonly<Record<string, string>> = {
  message: 'msg_',
  reasoning: 'rs_',
  function_call: 'fc_',
  function_call_output: 'fco_',
  custom_tool_call: 'ctc_',
  custom_tool_call_output: 'ctco_',
  compaction: 'cmp_',
  file_search_call: 'fs_',
}

const typesWithStatus: ReadonlySet<string> = new Set([
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
])

const idCharsMax = 128

/**
 * An item of an input as it is kept: with an id, which lists and references need, and in its long
 * form, which the types of the SDKs know.
 */
export function storedItem(type: string, item: JsonObject): StoredItem {
  const { id, content, status } = item
  const hasId = typeof id === 'string' && id !== '' && id.length <= idCharsMax
  const kept = {
    ...item,
    type,
    id: hasId ? id : newId(idPrefixes[type] ?? 'item_'),
  }
  if (typesWithStatus.has(type)) return { ...kept, status: status ?? 'completed' }
  if (type !== 'message') return kept
  const parts = typeof content === 'string' ? [textPart(content, item['role'])] : content
  return { ...kept, status: status ?? 'completed', content: parts }
}

export function storedText(text: string): StoredItem {
  return storedItem('message', { role: 'user', content: text })
}

function textPart(text: string, role: unknown): JsonObject {
  return role === 'assistant'
    ? { type: 'output_text', text, annotations: [] }
    : { type: 'input_text', text }
}
