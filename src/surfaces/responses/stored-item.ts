import type { ContentPart } from '#inference/request.ts'
import { assertNever } from '#lib/assert.ts'
import { AppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import type { JsonObject } from '#lib/json.ts'
import type { StoredItem } from '#responses/response.ts'
import type { MessageItem } from './compacted-context.ts'

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

/** An input item in the form that is stored: with an id, and with the fields that SDK types require. */
export function toStoredItem(type: string, item: JsonObject): StoredItem {
  const { id: given, content, status } = item
  const hasId = typeof given === 'string' && given !== '' && given.length <= idCharsMax
  const id = hasId ? given : newId(idPrefixes[type] ?? 'item_')
  if (typesWithStatus.has(type)) return { ...item, type, id, status: status ?? 'completed' }
  if (type !== 'message') return { ...item, type, id }
  const parts = typeof content === 'string' ? [textPart(content, item['role'])] : content
  return { ...item, type, id, status: status ?? 'completed', content: parts }
}

export function toStoredMessage(text: string): StoredItem {
  return toStoredItem('message', { role: 'user', content: text })
}

function textPart(text: string, role: unknown): JsonObject {
  return role === 'assistant'
    ? { type: 'output_text', text, annotations: [] }
    : { type: 'input_text', text }
}

/** A user message as an input item. */
export function toInputMessage({ parts }: MessageItem): object {
  return {
    id: newId('msg_'),
    type: 'message',
    status: 'completed',
    role: 'user',
    content: parts.map(toInputPart),
  }
}

function toInputPart(part: ContentPart): object {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return { type: 'input_text', text: part.text }
    case 'image':
      return { type: 'input_image', image_url: part.url, detail: part.detail ?? 'auto' }
    case 'file':
      return {
        type: 'input_file',
        ...(part.filename === null ? {} : { filename: part.filename }),
        ...(part.data === null ? {} : { file_data: part.data }),
        ...(part.url === null ? {} : { file_url: part.url }),
      }
    default:
      return assertNever(part)
  }
}

/** Throws `request_too_large`. */
export function requireStorable(input: readonly StoredItem[], charsMax: number): void {
  const chars = input.reduce((sum, item) => sum + JSON.stringify(item).length, 0)
  if (chars <= charsMax) return
  throw new AppError(
    'request_too_large',
    `The input exceeds the limit of ${charsMax} characters for stored responses; send store: false.`,
    { param: 'input' },
  )
}
