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
