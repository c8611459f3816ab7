import { describe, expect, test } from 'bun:test'
import type { GenerationEvent } from '#inference/events.ts'
import { blocksOf, decode, decodeReads, encode, openDecoder } from './decoding.ts'
import {
  completed,
  created,
  itemAdded,
  itemDone,
  message,
  messageWith,
  textDelta,
} from './payloads.ts'

const failed = (error: unknown) => ({
  type: 'response.failed',
  response: { status: 'failed', error },
})

describe('noise', () => {
  test('is ignored', () => {
    const progress = { type: 'response.in_progress', response: { status: 'in_progress' } }
    const decoded = decode([
      created,
      progress,
      created,
      { type: 'response.queued', response: {} },
      { type: 'keepalive', sequence_number: 3 },
      ': no comment',
      'ping',
      '"text"',
      '[1]',
      itemAdded(message),
      progress,
      { type: 'acme:trace', span: 1 },
      { type: 'response.acme.delta', delta: 'x' },
      { ...textDelta('Hi'), obfuscation: 'aB3dE', logprobs: [], sequence_number: 9 },
      { type: 'response.output_text.delta', item_id: 'msg_1', output_index: 0, delta: '' },
      { type: 'response.output_text.delta', item_id: 'msg_1', output_index: 0 },
      { type: 'response.output_item.added', output_index: 1, item: null },
      progress,
      itemDone(messageWith('Hi')),
      itemDone(messageWith('Hi')),
      { type: 'response.output_text.done', item_id: 'msg_1', output_index: 0, text: 'Hi' },
      completed([messageWith('Hi')]),
    ])
    expect(decoded.error).toBeNull()
    expect(blocksOf(decoded)).toEqual([{ text: 'Hi' }])
  })

  test('after the final event is ignored', () => {
    const decoded = decode([
      created,
      completed([messageWith('Hi')]),
      completed([messageWith('Ho')]),
      failed({ message: 'late' }),
      '[DONE]',
      '[DONE]',
    ])
    expect(decoded.error).toBeNull()
    expect(blocksOf(decoded)).toEqual([{ text: 'Hi' }])
  })

  test.each([
    ['an unknown event with an output', { type: 'acme.snapshot', output: [messageWith('Half')] }],
    ['an unknown event of the namespace', { type: 'response.acme', output: [messageWith('Half')] }],
    ['an unknown event that holds a response', { type: 'acme.sync', object: 'response' }],
    ['data without a type', { output: [messageWith('Half')] }],
    ['a response as the data of an event', { object: 'response', output: [messageWith('Half')] }],
    ['an unknown event with an error', { type: 'acme.trace', error: { message: 'span lost' } }],
  ])('%s does not end the response', (_, payload) => {
    const start = [created, itemAdded(message), textDelta('Hi')]
    const decoded = decode([...start, payload, itemDone(messageWith('Hi there')), completed()])
    expect(decoded.error).toBeNull()
    expect(blocksOf(decoded)).toEqual([{ text: 'Hi there' }])
    expect(decode([...start, payload]).error?.kind).toBe('upstream_truncated')
  })

  test('a keep-alive before the first event does not start the generation', () => {
    const events: GenerationEvent[] = []
    openDecoder().push({ event: 'keepalive', data: '{"type":"keepalive"}' }, events)
    expect(events).toEqual([])
  })

  test('the type may be in the event field alone', () => {
    const body = [created, itemAdded(message), textDelta('Hi'), completed()]
      .map(({ type, ...payload }) => `event: ${type}\ndata: ${JSON.stringify(payload)}\n\n`)
      .join('')
    expect(blocksOf(decodeReads([encode(body)]))).toEqual([{ text: 'Hi' }])
  })
})
