import { asRecord, isRecord, type JsonObject, withoutNulls } from '#lib/json.ts'
import { isToolUse, readInput, readText } from './wire.ts'

/** Whether a start is as it should be, and holds nothing of what is still to be told. */
export function isOpening({ content, stop_reason, usage }: JsonObject): boolean {
  const isEmpty = Array.isArray(content) && content.length === 0
  const { input_tokens: input, output_tokens: output } = asRecord(usage)
  const isCounted = typeof input === 'number' && typeof output === 'number'
  return isEmpty && isCounted && (stop_reason === null || stop_reason === undefined)
}

/** The fields that strict clients read at once. */
export function completeMessage(message: JsonObject): JsonObject {
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

/** What a message that came whole would have been told by: its blocks, and what ends it. */
export function divideMessage(message: JsonObject): { blocks: JsonObject[]; delta: JsonObject } {
  const { content, stop_reason, stop_sequence, stop_details, container, usage } = message
  const context = message['context_management']
  return {
    blocks: Array.isArray(content) ? content.filter(isRecord).flatMap(streamOfBlock) : [],
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

function streamOfBlock(block: JsonObject, index: number): JsonObject[] {
  const { shell, deltas } = divideBlock(block)
  return [
    { type: 'content_block_start', index, content_block: shell },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ]
}

/** What a block begins as, and what makes it grow to what it is; others come at once. */
export function divideBlock(block: JsonObject): { shell: JsonObject; deltas: JsonObject[] } {
  const type = readText(block['type'])
  if (type === 'text') {
    const { citations, text, ...rest } = block
    const cited = Array.isArray(citations) ? citations : []
    return {
      shell: { ...rest, text: '', ...(cited.length === 0 ? pick(citations) : { citations: [] }) },
      deltas: [
        ...cited.map((citation) => ({ type: 'citations_delta', citation })),
        { type: 'text_delta', text: readText(text) },
      ],
    }
  }
  if (type === 'thinking') {
    const { thinking, signature, ...rest } = block
    return {
      shell: { ...rest, thinking: '', signature: '' },
      deltas: [
        { type: 'thinking_delta', thinking: readText(thinking) },
        { type: 'signature_delta', signature: readText(signature) },
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

function pick(citations: unknown): { citations?: unknown } {
  return citations === undefined ? {} : { citations }
}
