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
  return {
    type: 'message',
    role: 'assistant',
    ...message,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
    usage: { input_tokens: 0, output_tokens: 0, ...withoutNulls(asRecord(message['usage'])) },
  }
}

/** The events by which a complete message would have been streamed: its blocks and its end. */
export function splitMessage(message: JsonObject): { blocks: JsonObject[]; delta: JsonObject } {
  const { content, stop_reason, stop_sequence, stop_details, container, usage } = message
  const context = message['context_management']
  return {
    blocks: Array.isArray(content) ? content.filter(isRecord).flatMap(eventsOfBlock) : [],
    delta: {
      type: 'message_delta',
      delta: {
        stop_reason,
        stop_sequence: stop_sequence ?? null,
        ...(stop_details === undefined ? {} : { stop_details }),
        ...(container === undefined ? {} : { container }),
      },
      ...(context === undefined ? {} : { context_management: context }),
      usage,
    },
  }
}

function eventsOfBlock(block: JsonObject, index: number): JsonObject[] {
  const { shell, deltas } = splitBlock(block)
  return [
    { type: 'content_block_start', index, content_block: shell },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ]
}

/** The start of a block and its deltas; block types without deltas are complete in the start. */
export function splitBlock(block: JsonObject): { shell: JsonObject; deltas: JsonObject[] } {
  const type = readString(block['type'])
  if (type === 'text') {
    const { citations, text, ...rest } = block
    const cited = Array.isArray(citations) ? citations : []
    return {
      shell: {
        ...rest,
        text: '',
        ...(citations === undefined ? {} : { citations: cited.length === 0 ? citations : [] }),
      },
      deltas: [
        ...cited.map((citation) => ({ type: 'citations_delta', citation })),
        { type: 'text_delta', text: readString(text) },
      ],
    }
  }
  if (type === 'thinking') {
    const { thinking, signature, ...rest } = block
    return {
      shell: { ...rest, thinking: '', signature: '' },
      deltas: [
        { type: 'thinking_delta', thinking: readString(thinking) },
        { type: 'signature_delta', signature: readString(signature) },
      ].filter((delta) => Object.values(delta).every((value) => value !== '')),
    }
  }
  if (!isToolUse(type)) return { shell: block, deltas: [] }
  const input = readInput(block['input'])
  return {
    shell: { ...block, input: {} },
    deltas: [{ type: 'input_json_delta', partial_json: input }],
  }
}
