import { expect } from 'bun:test'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import { messageObject } from '#surfaces/messages/schema/message-object.ts'
import { checkDescribed } from './described-shapes.ts'
import { checkBlock, checkContent } from './message-blocks.ts'

/** Validates a message, its end and errors, streamed or as a body. */

/** `cut`: whether the last block may be incomplete with this end. */
const stopReasons: Readonly<Record<string, { cut: boolean }>> = {
  end_turn: { cut: false },
  tool_use: { cut: false },
  pause_turn: { cut: false },
  stop_sequence: { cut: false },
  max_tokens: { cut: true },
  model_context_window_exceeded: { cut: true },
  refusal: { cut: true },
  compaction: { cut: false },
}

const errorTypes = [
  'invalid_request_error',
  'authentication_error',
  'billing_error',
  'permission_error',
  'not_found_error',
  'timeout_error',
  'conflict_error',
  'request_too_large',
  'rate_limit_error',
  'api_error',
  'overloaded_error',
]

const counts = [
  'input_tokens',
  'output_tokens',
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
]

/** The message of `message_start`; returns the complete calls that it may begin with. */
export function checkMessageHead(message: JsonObject): JsonObject[] {
  checkHead(message)
  const { content } = message
  if (!Array.isArray(content)) throw new Error('a message without content')
  if (content.length === 0) expect(message['stop_reason']).toBeNull()
  expect(message['stop_sequence']).toBeNull()
  expect(message['stop_details'] ?? null).toBeNull()
  checkUsage(asRecord(message['usage']), { isWhole: true })
  const calls = content.map(asRecord)
  for (const call of calls) expect(call['type'], 'nothing else comes at once').toBe('tool_use')
  return calls
}

/** A complete message without streaming. */
export function checkMessageBody(body: unknown): JsonObject {
  const message = asRecord(body)
  checkDescribed(messageObject, message)
  checkHead(message)
  const content = message['content']
  if (!Array.isArray(content)) throw new Error('a message without content')
  for (const [at, block] of content.entries()) {
    const isEmptyAllowed = isCut(message['stop_reason']) && at === content.length - 1
    checkBlock(asRecord(block), { isEmptyAllowed })
  }
  checkContent(content)
  checkEnd(message, content)
  checkUsage(asRecord(message['usage']), { isWhole: true })
  return message
}

function checkHead({ id, type, role, model }: JsonObject): void {
  expect(id).toMatch(/^msg_[A-Za-z0-9_-]+$/)
  expect([type, role]).toEqual(['message', 'assistant'])
  expect(model, 'the name that the caller used').toMatch(/./)
}

/** Why a message ended, in the message or in the `delta` of its end. */
export function checkEnd(end: JsonObject, content: readonly JsonObject[]): void {
  const { stop_reason: reason, stop_sequence: sequence = null, stop_details: details = null } = end
  expect(Object.keys(stopReasons)).toContain(String(reason))
  if (reason === 'stop_sequence') expect(sequence, 'which one it was').toMatch(/./)
  else expect(sequence).toBeNull()
  if (details !== null) {
    expect(reason).toBe('refusal')
    expect(asRecord(details)['type']).toBe('refusal')
  }
  const calls = content.filter(({ type }) => type === 'tool_use').length
  if (reason === 'tool_use') expect(calls, 'there is a call').toBeGreaterThan(0)
  if (reason === 'end_turn') expect(calls, 'a call is not the end of the turn').toBe(0)
}

export function isCut(stopReason: unknown): boolean {
  return stopReasons[String(stopReason)]?.cut === true
}

/** `isWhole`: includes the input count, which the end of a stream may omit. */
export function checkUsage(usage: JsonObject, { isWhole }: { isWhole: boolean }): void {
  expect(usage['output_tokens']).toBeNumber()
  if (isWhole) expect(usage['input_tokens']).toBeNumber()
  for (const name of counts) {
    const count = usage[name] ?? 0
    expect(Number.isInteger(count) && Number(count) >= 0, `${name} is a count`).toBe(true)
  }
  const { thinking_tokens: thinking } = asRecord(usage['output_tokens_details'])
  if (typeof thinking === 'number') {
    expect(thinking, 'thinking is output').toBeLessThanOrEqual(Number(usage['output_tokens']))
  }
}

/** An error event or error response; returns its inner object. */
export function checkErrorBody(body: unknown): JsonObject {
  expect(asRecord(body)['type']).toBe('error')
  const { error } = asRecord(body)
  if (!isRecord(error)) throw new Error('an error without its object')
  expect(errorTypes).toContain(String(error['type']))
  expect(error['message']).toMatch(/./)
  return error
}
