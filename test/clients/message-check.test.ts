import { describe, expect, test } from 'bun:test'
import { asRecord, type JsonObject } from '#lib/json.ts'
import {
  checkMessageBeginning,
  checkMessageStream,
  type MessageFrame,
} from '#test/support/message-frames.ts'
import { checkErrorBody, checkMessageBody } from '#test/support/message-objects.ts'
import { messageWire, sampleMessage } from '#test/support/sample-message.ts'

/** The validation of every stream of /compat in all tests accepts valid streams only. */

const whole = sampleMessage()
const last = whole.length - 1
const isOf = (frame: MessageFrame, part: string) =>
  [frame['delta'], frame['content_block']].some((inner) => asRecord(inner)['type'] === part)
const find = (part: string, nth = 0) =>
  whole.flatMap((frame, at) => (frame.type === part || isOf(frame, part) ? [at] : []))[nth] ?? -1
const without = (at: number) => whole.toSpliced(at, 1)
const twice = (at: number) => whole.toSpliced(at, 0, ...whole.slice(at, at + 1))
const swapped = (at: number) => whole.toSpliced(at, 2, ...whole.slice(at, at + 2).reverse())
const insert = (at: number, frame: MessageFrame) => whole.toSpliced(at, 0, frame)
const replace = (at: number, fields: JsonObject) =>
  whole.map((frame, place) => (place === at ? { ...frame, ...fields } : frame))
const inside = (at: number, field: string, fields: JsonObject) =>
  replace(at, { [field]: { ...asRecord(whole[at]?.[field]), ...fields } })
const inMessage = (fields: JsonObject) => inside(0, 'message', fields)
const inBlock = (part: string, fields: JsonObject) => inside(find(part), 'content_block', fields)
const inDelta = (part: string, fields: JsonObject, nth = 0) =>
  inside(find(part, nth), 'delta', fields)
const inEnd = (fields: JsonObject) => inside(last - 1, 'delta', fields)
const inUsage = (fields: JsonObject) => inside(last - 1, 'usage', fields)
const error = { type: 'error', error: { type: 'api_error', message: 'It broke.' } }

const broken: [what: string, frames: MessageFrame[]][] = [
  ['no message_start', without(0)],
  ['message_start twice', twice(0)],
  ['a message without a generated id', inMessage({ id: 'chatcmpl-1' })],
  ['a message without a model', inMessage({ model: '' })],
  ['a message of another role', inMessage({ role: 'user' })],
  ['a message that begins with text', inMessage({ content: [{ type: 'text', text: 'x' }] })],
  ['a message that has already ended at its start', inMessage({ stop_reason: 'end_turn' })],
  ['a message without usage', inMessage({ usage: null })],
  ['usage without input tokens', inMessage({ usage: { output_tokens: 1 } })],
  ['usage without output tokens', inMessage({ usage: { input_tokens: 1 } })],
  ['a ping with further fields', replace(1, { x: 1 })],
  ['an event of a vendor', insert(1, { type: 'acme_trace' })],
  ['no message_delta', without(last - 1)],
  ['no message_stop', without(last)],
  ['two message_stop', twice(last)],
  ['a ping after the end', insert(last + 1, { type: 'ping' })],
  ['a block before the message', swapped(0).toSpliced(1, 0, ...whole.slice(2, 3))],
  ['a block after the end', swapped(last - 2)],
  ['a delta without a block start', without(find('text'))],
  ['a block without its stop', without(find('content_block_stop'))],
  ['a block start twice', twice(find('text'))],
  ['a block stop twice', twice(find('content_block_stop'))],
  ['an index gap', replace(find('text'), { index: 9 })],
  ['a delta of another block', replace(find('text_delta'), { index: 0 })],
  ['a stop of another block', replace(find('content_block_stop', 1), { index: 0 })],
  ['a delta between blocks', swapped(find('text') - 1)],
  ['an unknown block', inBlock('redacted_thinking', { type: 'web_search_call' })],
  ['an unknown delta', inDelta('text_delta', { type: 'acme_delta' })],
  [
    'a thinking delta in a text block',
    inDelta('text_delta', { type: 'thinking_delta', thinking: 'x' }),
  ],
  [
    'a text delta in a thinking block',
    inDelta('thinking_delta', { type: 'text_delta', text: 'x' }),
  ],
  [
    'a text delta in a tool_use block',
    inDelta('input_json_delta', { type: 'text_delta', text: 'x' }),
  ],
  ['a delta in a block without deltas', insert(find('redacted_thinking') + 1, textDelta(1))],
  ['a delta without its text', inDelta('text_delta', { text: null })],
  ['a text block that starts with text', inBlock('text', { text: 'x' })],
  ['a thinking block that starts with thinking', inBlock('thinking', { thinking: 'x' })],
  ['a signature before the end of thinking', swapped(find('thinking_delta', 1))],
  ['two signatures', twice(find('signature_delta'))],
  ['an empty text', whole.toSpliced(find('text') + 1, 3)],
  ['an unknown citation', inDelta('citations_delta', { citation: { type: 'x' } })],
  ['a citation without its source', inDelta('citations_delta', { citation: cited({ url: null }) })],
  ['redacted thinking without its data', inBlock('redacted_thinking', { data: null })],
  ['a call without an id', inBlock('tool_use', { id: '' })],
  ['a call with an invalid id', inBlock('tool_use', { id: 'functions.n:0' })],
  ['a call without a name', inBlock('tool_use', { name: '' })],
  ['a call without a caller', inBlock('tool_use', { caller: null })],
  ['a call with input before its deltas', inBlock('tool_use', { input: { b: 1 } })],
  ['two calls with one id', inBlock('tool_use', { id: 'mcptoolu_1' })],
  ['incomplete input', without(find('input_json_delta', 2))],
  ['duplicated input', twice(find('input_json_delta', 2))],
  ['input that is not an object', inDelta('input_json_delta', { partial_json: '[' }, 1)],
  ['an MCP call without its server', inBlock('mcp_tool_use', { server_name: null })],
  ['a result without its call', inBlock('mcp_tool_result', { tool_use_id: 'mcptoolu_2' })],
  ['a result without is_error', inBlock('mcp_tool_result', { is_error: null })],
  ['an end without a stop reason', inEnd({ stop_reason: null })],
  ['an end with an unknown stop reason', inEnd({ stop_reason: 'stop' })],
  ['end_turn with a call', inEnd({ stop_reason: 'end_turn' })],
  ['an end without usage', replace(last - 1, { usage: null })],
  ['an end without its delta', replace(last - 1, { delta: null })],
  ['a missing stop sequence', inEnd({ stop_reason: 'stop_sequence' })],
  ['a stop sequence with another stop reason', inEnd({ stop_sequence: 'END' })],
  ['refusal details without a refusal', inEnd({ stop_details: { type: 'refusal' } })],
  ['decreasing output tokens', inUsage({ output_tokens: 0 })],
  ['output tokens missing', inUsage({ output_tokens: null })],
  ['a negative count', inUsage({ cache_read_input_tokens: -1 })],
  ['a count that is not a number', inUsage({ input_tokens: '9' })],
  ['more thinking than output', inUsage({ output_tokens_details: { thinking_tokens: 8 } })],
  ['an error in an open block', insert(find('text') + 1, error).slice(0, find('text') + 2)],
  ['an event after an error', insert(find('text'), error)],
  ['an error of an unknown type', [{ ...error, error: { type: 'server_error', message: 'x' } }]],
  ['an error without a message', [{ ...error, error: { type: 'api_error' } }]],
]

function textDelta(index: number): MessageFrame {
  return { type: 'content_block_delta', index, delta: { type: 'text_delta', text: 'x' } }
}

function cited(fields: JsonObject): JsonObject {
  return { ...asRecord(asRecord(whole[find('citations_delta')]?.['delta'])['citation']), ...fields }
}

describe('the validation of message streams', () => {
  test('accepts a stream with a block of every kind, and accumulates it', () => {
    const { frames, message } = checkMessageStream(messageWire(whole))
    expect(frames).toEqual(whole)
    expect(message).toMatchObject({
      content: [
        { thinking: 'Hm, yes.', signature: 's' },
        { data: 'd' },
        { input: { a: 1 } },
        { is_error: false },
        { text: 'So it is.', citations: [{ url: 'u' }] },
        { input: { a: 1 } },
      ],
      usage: { input_tokens: 9, output_tokens: 7 },
      stop_reason: 'tool_use',
    })
    expect(checkMessageBody(message)).toEqual(message ?? {})
  })

  test.each(broken)('rejects %s', (_, frames) => {
    expect(() => checkMessageStream(messageWire(frames))).toThrow()
  })

  test('accepts truncated input only where the output was cut off', () => {
    const cut = inEnd({ stop_reason: 'max_tokens' }).toSpliced(find('input_json_delta', 2), 1)
    const { message } = checkMessageStream(messageWire(cut))
    expect(asRecord(message)['content']).toMatchObject([{}, {}, {}, {}, {}, { input: {} }])
    const behind = (frames: MessageFrame[]) => frames.toSpliced(-2, 0, ...oneMore)
    checkMessageStream(messageWire(behind(whole)))
    expect(() => checkMessageStream(messageWire(behind(cut)))).toThrow()
  })

  test('accepts an error between blocks and before the message begins', () => {
    const begun = whole.slice(0, find('text'))
    const failed = checkMessageStream(messageWire([...begun, error]))
    expect(failed.error).toEqual(error.error)
    expect(checkMessageStream(messageWire([{ type: 'ping' }, error])).message).toBeNull()
  })

  test('accepts the beginning of a stream up to any frame, and nothing else', () => {
    for (const count of whole.keys()) {
      const wire = messageWire(whole.slice(0, count))
      expect(checkMessageBeginning(`${wire}event: mess`)).toHaveLength(count)
      if (count > 2)
        expect(() => checkMessageBeginning(messageWire(whole.slice(1, count)))).toThrow()
    }
  })

  const wire = messageWire(whole)
  const wires: [what: string, wire: string][] = [
    ['nothing', ''],
    ['a stream that ends with [DONE]', `${wire}data: [DONE]\n\n`],
    ['a truncated last frame', wire.slice(0, -1)],
    ['an event with a different name', wire.replace('event: message_start', 'event: start')],
    ['an event without a name', wire.replace('event: message_start\n', '')],
    ['a comment', wire.replace('\n\n', '\n\n: alive\n\n')],
  ]
  test.each(wires)('rejects %s', (_, text) => {
    expect(() => checkMessageStream(text)).toThrow()
  })
})

/** A complete block after all others. */
const oneMore: MessageFrame[] = [
  { type: 'content_block_start', index: 6, content_block: { type: 'text', text: '' } },
  textDelta(6),
  { type: 'content_block_stop', index: 6 },
]

describe('the validation of message bodies', () => {
  const body = asRecord(checkMessageStream(messageWire(whole)).message)
  const content = body['content'] as JsonObject[]
  const wrong: [what: string, body: unknown][] = [
    ['nothing', null],
    ['a body of another type', { ...body, type: 'completion' }],
    ['a body without content', { ...body, content: null }],
    ['an unknown block', { ...body, content: [{ type: 'x' }, ...content] }],
    ['a text block without text', { ...body, content: [{ type: 'text', text: '' }, ...content] }],
    ['thinking without text', { ...body, content: [{ type: 'thinking' }, ...content] }],
    ['input as a string', { ...body, content: [{ ...content[5], input: '{}' }] }],
    ['an unfinished body', { ...body, stop_reason: null }],
    ['a stop reason for calls without calls', { ...body, content: content.slice(0, 5) }],
    ['a body without usage', { ...body, usage: null }],
  ]
  test.each(wrong)('rejects %s', (_, given) => {
    expect(() => checkMessageBody(given)).toThrow()
  })

  test('accepts an error of the format, and no other', () => {
    expect(checkErrorBody(error)).toEqual(error.error)
    expect(() => checkErrorBody({ error: error.error })).toThrow()
    expect(() => checkErrorBody({ type: 'error', error: 'It broke.' })).toThrow()
  })
})
