import { expect, test } from 'bun:test'
import { fillMessage, isEmptyStart } from '#inference/upstreams/messages/whole-message.ts'
import { decodeWhole } from './decoding.ts'

const whole = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'Hi' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 7, output_tokens: 2 },
}

/** The last frame but one, which tells how the message ended. */
function endOf(message: object) {
  return decodeWhole({ ...whole, ...message }).frames.at(-2)?.payload
}

const end = {
  type: 'message_delta',
  delta: { stop_reason: 'end_turn', stop_sequence: null },
  usage: whole.usage,
}

test('the end of a whole message has no fields that the message did not have', () => {
  expect(endOf({})).toEqual(end)
})

test.each([
  ['stop_sequence', { stop_reason: 'stop_sequence', stop_sequence: 'END' }],
  ['stop_details', { stop_details: { type: 'refusal', category: null, explanation: 'No.' } }],
  ['stop_details of null', { stop_details: null }],
  ['container', { container: { id: 'container_1', expires_at: '2026-11-28T00:00:00Z' } }],
])('the end of a whole message keeps %s', (_, fields) => {
  expect(endOf(fields)).toEqual({ ...end, delta: { ...end.delta, ...fields } })
})

test('the end of a whole message keeps context_management', () => {
  const context_management = { applied_edits: [] }
  expect(endOf({ context_management })).toEqual({ ...end, context_management })
})

test('a start is completed with the fields that strict clients require', () => {
  const given = { id: 'msg_1', usage: { input_tokens: 7, output_tokens: null, service_tier: 'x' } }
  const filled = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
    usage: { input_tokens: 7, output_tokens: 0, service_tier: 'x' },
  }
  expect(fillMessage(given)).toEqual(filled)
  expect(fillMessage({ ...whole, stop_details: {} })).toMatchObject({
    content: [],
    stop_details: null,
  })
  expect(fillMessage({})['usage']).toEqual({ input_tokens: 0, output_tokens: 0 })
})

const start = { ...whole, content: [], stop_reason: null }

test.each([
  [true, start],
  [true, { ...start, stop_reason: undefined }],
  [false, { ...start, content: null }],
  [false, { ...start, content: whole.content }],
  [false, { ...start, stop_reason: 'end_turn' }],
  [false, { ...start, usage: null }],
  [false, { ...start, usage: { input_tokens: 7 } }],
  [false, { ...start, usage: { output_tokens: 7 } }],
])('whether a start is empty: %p for %j', (isEmpty, message) => {
  expect(isEmptyStart(message)).toBe(isEmpty)
})

test('the blocks of a whole message are those of a stream', () => {
  const cited = { type: 'web_search_result_location', url: 'https://a.example' }
  const content = [
    { type: 'thinking', thinking: 'Hm.', signature: 'sig' },
    { type: 'thinking', thinking: 'So.' },
    { type: 'redacted_thinking', data: 'data' },
    { type: 'text', text: 'Hi', citations: [cited] },
    { type: 'text', text: 'Ho', citations: null },
    { type: 'tool_use', id: 'toolu_1', name: 'look', input: { a: 1 } },
  ]
  const { frames } = decodeWhole({ ...whole, content })
  const start = (content_block: object) => ({ type: 'content_block_start', content_block })
  const delta = (given: object) => ({ type: 'content_block_delta', delta: given })
  const stop = { type: 'content_block_stop' }
  const thinking = { type: 'thinking', thinking: '', signature: '' }
  expect(frames.slice(1, -2).map(({ payload }) => payload)).toEqual(
    [
      [
        start(thinking),
        delta({ type: 'thinking_delta', thinking: 'Hm.' }),
        delta({ type: 'signature_delta', signature: 'sig' }),
        stop,
      ],
      [start(thinking), delta({ type: 'thinking_delta', thinking: 'So.' }), stop],
      [start({ type: 'redacted_thinking', data: 'data' }), stop],
      [
        start({ type: 'text', text: '', citations: [] }),
        delta({ type: 'citations_delta', citation: cited }),
        delta({ type: 'text_delta', text: 'Hi' }),
        stop,
      ],
      [
        start({ type: 'text', text: '', citations: null }),
        delta({ type: 'text_delta', text: 'Ho' }),
        stop,
      ],
      [
        start({ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }),
        delta({ type: 'input_json_delta', partial_json: '{"a":1}' }),
        stop,
      ],
    ].flatMap((frames, index) => frames.map((frame) => ({ ...frame, index }))),
  )
})
