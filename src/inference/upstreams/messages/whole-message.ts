import { readString } from '#inference/upstream-fields.ts'
import { asRecord, isRecord, type JsonObject, withoutNulls } from '#lib/json.ts'
import { isToolUse, readInput } from './wire.ts'

/** Whether a start is valid and has no content yet. */
export function isEmptyStart({ content, stop_reason, usage }: JsonObject): boolean {
  const isEmpty = Array.isArray(content) && content.length === 0
  const { input_tokens: input, output_tokens: output } = asRecord(usage)
  const isCounted = typeof input === 'number' && typeof output === 'number'
  return isEmpty && isCounted && (stop_reason === null || stop_reason === undefined)
}

/** The start of a message with the fields that strict clients require. */
export function fillMessage(message: JsonObject): JsonObject {
  const { type = 'message', role = 'assistant' } = message
  return {
    ...message,
    type,
    role,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
    usage: { input_tokens: 0, output_tokens: 0, ...withoutNulls(asRecord(message['usage'])) },
  }
}

/** The events by which a complete message would have been streamed: its blocks and its end. */
export function splitMessage(message: JsonObject): { blocks: JsonObject[]; delta: JsonObject } {
  const { content, stop_reason, stop_sequence, usage } = message
  const blocks: JsonObject[] = []
  if (Array.isArray(content)) addEvents(blocks, content)
  const delta: JsonObject = { stop_reason, stop_sequence: stop_sequence ?? null }
  copyField('stop_details', message, delta)
  copyField('container', message, delta)
  const end: JsonObject = { type: 'message_delta', delta, usage }
  copyField('context_management', message, end)
  return { blocks, delta: end }
}

function copyField(name: string, from: JsonObject, to: JsonObject): void {
  if (from[name] !== undefined) to[name] = from[name]
}

function addEvents(events: JsonObject[], content: readonly unknown[]): void {
  let index = 0
  for (const block of content) {
    if (!isRecord(block)) continue
    const { shell, deltas } = splitBlock(block)
    events.push({ type: 'content_block_start', index, content_block: shell })
    for (const delta of deltas) events.push({ type: 'content_block_delta', index, delta })
    events.push({ type: 'content_block_stop', index })
    index++
  }
}

/** The start of a block and its deltas; block types without deltas are complete in the start. */
export function splitBlock(block: JsonObject): { shell: JsonObject; deltas: JsonObject[] } {
  const type = readString(block['type'])
  if (type === 'text') {
    const { citations } = block
    const shell: JsonObject = { ...block, text: '' }
    const deltas: JsonObject[] = []
    if (Array.isArray(citations) && citations.length > 0) {
      shell['citations'] = []
      for (const citation of citations) deltas.push({ type: 'citations_delta', citation })
    }
    deltas.push({ type: 'text_delta', text: readString(block['text']) })
    return { shell, deltas }
  }
  if (type === 'thinking') {
    const thinking = readString(block['thinking'])
    const signature = readString(block['signature'])
    const deltas: JsonObject[] = []
    if (thinking !== '') deltas.push({ type: 'thinking_delta', thinking })
    if (signature !== '') deltas.push({ type: 'signature_delta', signature })
    return { shell: { ...block, thinking: '', signature: '' }, deltas }
  }
  if (!isToolUse(type)) return { shell: block, deltas: [] }
  const input = readInput(block['input'])
  return {
    shell: { ...block, input: {} },
    deltas: [{ type: 'input_json_delta', partial_json: input }],
  }
}
