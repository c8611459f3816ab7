import { describe, expect, test } from 'bun:test'
import { blocksOf, decode, decodeReads, decodeWhole, encode, finishOf, sseOf } from './decoding.ts'
import {
  call,
  completed,
  created,
  itemAdded,
  itemDone,
  message,
  messageWith,
  textDelta,
} from './payloads.ts'

const usage = {
  input_tokens: 10,
  input_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 3 },
  total_tokens: 15,
}
const failed = (error: unknown) => ({
  type: 'response.failed',
  response: { status: 'failed', error },
})

describe('failures', () => {
  const start = [created, itemAdded(message), textDelta('Hal')]
  const words = { code: 'server_is_overloaded', message: 'Too busy.', param: null }

  test.each([
    ['a flat error event', { type: 'error', ...words, sequence_number: 4 }],
    ['a nested error event', { type: 'error', error: { type: 'server_error', ...words } }],
    ['both in one', { type: 'error', ...words, error: { type: 'server_error', ...words } }],
    ['response.error', { type: 'response.error', ...words }],
    ['response.failed', failed(words)],
    ['an error object without a type', { error: { type: 'server_error', ...words } }],
  ])('%s: throws with the code and message, after the output', (_, payload) => {
    const decoded = decode([...start, payload, textDelta('f')])
    expect(decoded.error).toMatchObject({
      kind: 'upstream_error',
      wireCode: 'server_is_overloaded',
      message: 'Too busy.',
    })
    expect(blocksOf(decoded)).toEqual([{ text: 'Hal' }])
  })

  test('a failure without details is a failure', () => {
    for (const payload of [failed(null), { type: 'response.failed' }, { type: 'error' }]) {
      expect(decode([...start, payload]).error?.kind).toBe('upstream_error')
    }
  })

  test('errors that clients can correct keep their kind', () => {
    const kindOf = (code: string) =>
      decode([...start, failed({ code, message: 'No.' })]).error?.kind
    expect(kindOf('context_length_exceeded')).toBe('context_length_exceeded')
    expect(kindOf('rate_limit_exceeded')).toBe('rate_limit_exceeded')
  })

  test('a cancelled response is a failure', () => {
    for (const payload of [
      { type: 'response.cancelled', response: {} },
      { type: 'response.completed', response: { status: 'cancelled' } },
    ]) {
      expect(decode([...start, payload]).error?.kind).toBe('upstream_error')
    }
  })

  test('a body that ends without a final event is truncated', () => {
    expect(decode([]).error?.kind).toBe('upstream_truncated')
    expect(decode(start).error?.kind).toBe('upstream_truncated')
    expect(decode([...start, itemDone(messageWith('Half'))]).error?.kind).toBe('upstream_truncated')
  })

  test('[DONE] without a final event is truncated', () => {
    const decoded = decode([...start, itemDone(messageWith('Half')), '[DONE]'])
    expect(decoded.error?.kind).toBe('upstream_truncated')
    expect(blocksOf(decoded)).toEqual([{ text: 'Half' }])
  })

  test('a final event that is cut is truncated', () => {
    const body = sseOf([...start, completed([messageWith('Half')])])
    const decoded = decodeReads([encode(body.slice(0, -8))])
    expect(decoded.error?.kind).toBe('upstream_truncated')
    expect(blocksOf(decoded)).toEqual([{ text: 'Hal' }])
  })

  test('a final event without a blank line is complete', () => {
    const body = sseOf([...start, completed([messageWith('Half')])])
    expect(blocksOf(decodeReads([encode(body.slice(0, -2))]))).toEqual([{ text: 'Half' }])
  })
})

describe('a response that is not streamed', () => {
  const response = { id: 'resp_1', object: 'response', status: 'completed', usage }

  test('yields events', () => {
    const decoded = decodeWhole({
      ...response,
      output: [messageWith('Hi'), { ...call, arguments: '{"a":1}' }],
    })
    expect(blocksOf(decoded)).toEqual([
      { text: 'Hi' },
      { call: 'add', id: 'call_1', input: '{"a":1}' },
    ])
    expect(finishOf(decoded)).toMatchObject({ reason: 'tool-calls', usage: { totalTokens: 15 } })
  })

  test('may be incomplete', () => {
    const half = { ...messageWith('Hal'), status: 'incomplete' }
    const decoded = decodeWhole({
      ...response,
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output: [half],
    })
    expect(blocksOf(decoded)).toEqual([{ text: 'Hal', cut: true }])
    expect(finishOf(decoded)).toMatchObject({ reason: 'length' })
  })

  test('may lack object and status', () => {
    expect(blocksOf(decodeWhole({ output: [messageWith('Hi')] }))).toEqual([{ text: 'Hi' }])
  })

  test('that failed, was cancelled or still runs throws', () => {
    const error = { code: 'server_error', message: 'No.' }
    expect(decodeWhole({ ...response, status: 'failed', error }).error).toMatchObject({
      kind: 'upstream_error',
      message: 'No.',
    })
    expect(decodeWhole({ ...response, status: 'cancelled' }).error?.kind).toBe('upstream_error')
    expect(decodeWhole({ ...response, status: 'in_progress' }).error?.kind).toBe(
      'upstream_invalid_answer',
    )
    expect(decodeWhole({ error: { message: 'No.', type: 'server_error' } }).error?.message).toBe(
      'No.',
    )
    expect(decodeWhole({ choices: [] }).error?.kind).toBe('upstream_truncated')
  })
})
