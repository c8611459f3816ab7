import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import type { ReplayAnswer } from './replay-upstream.ts'
import {
  errorAnswer,
  faultOf,
  readMessages,
  redactedThought,
  signatureOf,
} from './strict-messages-upstream.ts'

/**
 * A native Messages upstream whose response depends on the request, like the other client test
 * upstreams.
 */

export function messagesAnswer(body: string): ReplayAnswer {
  const request: JsonObject = JSON.parse(body)
  const fault = faultOf(request, readMessages(request['messages']))
  if (fault !== null) return errorAnswer(400, 'invalid_request_error', fault)
  const answer = answerTo(request, listOf(request['messages']))
  const { blocks, stopSequence } = cutAt(answer, textsOf(request['stop_sequences']))
  const called = blocks.some(({ type }) => type === 'tool_use')
  const stopReason = stopSequence !== null ? 'stop_sequence' : called ? 'tool_use' : 'end_turn'
  return { body: messageStream(blocks, { stop_reason: stopReason, stop_sequence: stopSequence }) }
}

/** Frames as they are sent. */
export function messageWire(events: readonly JsonObject[]): string {
  return events
    .map((event) => `event: ${event['type']}\ndata: ${JSON.stringify(event)}\n\n`)
    .join('')
}

export const messageStart = {
  type: 'message_start',
  message: {
    id: 'msg_upstream',
    type: 'message',
    role: 'assistant',
    model: 'upstream-name',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 7, output_tokens: 1 },
  },
}

/** The stream of a message with these blocks, in small pieces. */
function messageStream(blocks: readonly JsonObject[], end: JsonObject): string {
  return messageWire([
    messageStart,
    { type: 'ping' },
    ...blocks.flatMap(blockEvents),
    { type: 'message_delta', delta: end, usage: { output_tokens: 3 } },
    { type: 'message_stop' },
  ])
}

export function blockEvents(block: JsonObject, index: number): JsonObject[] {
  const { shell, deltas } = divide(block)
  return [
    { type: 'content_block_start', index, content_block: shell },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ]
}

function divide(block: JsonObject): { shell: JsonObject; deltas: JsonObject[] } {
  const { type, text, thinking, signature, input } = block
  if (type === 'text') {
    const pieces = String(text).match(/\S+\s*/g) ?? []
    const deltas = pieces.map((piece) => ({ type: 'text_delta', text: piece }))
    return { shell: { type, text: '' }, deltas }
  }
  if (type === 'thinking') {
    return {
      shell: { type, thinking: '', signature: '' },
      deltas: [
        { type: 'thinking_delta', thinking },
        { type: 'signature_delta', signature },
      ],
    }
  }
  if (type !== 'tool_use') return { shell: block, deltas: [] }
  const pieces = JSON.stringify(input).match(/.{1,5}/gs) ?? []
  return {
    shell: { ...block, input: {} },
    deltas: ['', ...pieces].map((piece) => ({ type: 'input_json_delta', partial_json: piece })),
  }
}

function answerTo(request: JsonObject, messages: readonly JsonObject[]): JsonObject[] {
  const last = blocksOf(messages.at(-1)?.['content'])
  const prompt = JSON.stringify(last)
  const tools = listOf(request['tools']).filter((tool) => 'input_schema' in tool)
  const [tool] = tools
  // The vendor rejects an id that occurs twice in a conversation.
  const withTurn = (block: JsonObject) => ({ ...block, id: `${block['id']}${messages.length}` })
  const result = last.find(({ type }) => type === 'tool_result')
  if (result !== undefined) return [say(`It is ${readBlocks(result['content'])}.`)]
  if (prompt.includes('recall')) return [say(messages.map(recall).join('; '))]
  if (prompt.includes('parallel')) return [call('a', 'Oslo'), call('b', 'Rome')].map(withTurn)
  if (tool !== undefined) {
    const { city, answer } = asRecord(asRecord(tool['input_schema'])['properties'])
    const input = answer !== undefined ? { answer: 42 } : city !== undefined ? { city: 'Oslo' } : {}
    return [{ ...call('a', 'Oslo'), name: tool['name'], input }].map(withTurn)
  }
  if (isRecord(asRecord(request['output_config'])['format'])) return [say('{"answer": 42}')]
  if (prompt.includes('redacted')) {
    return [{ type: 'redacted_thinking', data: redactedThought }, say('Yes.')]
  }
  if (prompt.includes('think')) {
    const thinking = 'Hm, yes.'
    return [{ type: 'thinking', thinking, signature: signatureOf(thinking) }, say('Yes.')]
  }
  return [say('Hello wörld')]
}

const say = (text: string) => ({ type: 'text', text })
const call = (id: string, city: string) => ({
  type: 'tool_use',
  id: `toolu_${id}`,
  name: 'get_weather',
  input: { city },
})

function recall({ role, content }: JsonObject): string {
  return `${role} said ${readBlocks(content)}`
}

function readBlocks(content: unknown): string {
  return blocksOf(content)
    .map(({ text, thinking, content: inner }) =>
      inner === undefined ? String(text ?? thinking ?? '') : readBlocks(inner),
    )
    .join(' ')
}

function cutAt(blocks: JsonObject[], stopSequences: readonly string[]) {
  for (const block of blocks) {
    const { type, text } = block
    if (type !== 'text' || typeof text !== 'string') continue
    const stopSequence = stopSequences.find((sequence) => text.includes(sequence))
    if (stopSequence === undefined) continue
    return { blocks: [say(text.slice(0, text.indexOf(stopSequence)))], stopSequence }
  }
  return { blocks, stopSequence: null }
}

function blocksOf(content: unknown): JsonObject[] {
  return typeof content === 'string' ? [say(content)] : listOf(content)
}

function listOf(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : []
}
