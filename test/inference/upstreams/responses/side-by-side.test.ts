import { describe, expect, test } from 'bun:test'
import type { GenerationEvent } from '#inference/events.ts'
import { blocksOf, decode, openDecoder } from './decoding.ts'
import {
  added,
  call,
  completed,
  created,
  ended,
  input,
  message,
  reasoning,
  saying,
  text,
  thought,
} from './payloads.ts'

describe('llama.cpp, which reports all ends at the end of the stream', () => {
  const fcDelta = (delta: string, id: string) => input(delta, { item_id: id })
  const toolCall = (id: string, args: string) => ({
    type: 'function_call',
    call_id: id,
    name: 'add',
    arguments: args,
    status: 'completed',
  })
  const start = [
    created,
    added({ ...reasoning, content: [], encrypted_content: '' }, {}),
    thought('Hm.', { item_id: 'rs_1' }),
    added(message, {}),
    {
      type: 'response.content_part.added',
      item_id: 'msg_1',
      part: { type: 'output_text', text: '' },
    },
    text('Add', { item_id: 'msg_1' }),
    text('ing.', { item_id: 'msg_1' }),
  ]
  const rest = [
    added(toolCall('fc_a', ''), {}),
    fcDelta('{"a":', 'fc_a'),
    fcDelta('1}', 'fc_a'),
    added(toolCall('fc_b', ''), {}),
    fcDelta('{"a":2}', 'fc_b'),
    ended(
      { ...reasoning, content: [{ type: 'reasoning_text', text: 'Hm.' }], encrypted_content: '' },
      {},
    ),
    { type: 'response.output_text.done', item_id: 'msg_1', text: 'Adding.' },
    ended(saying('Adding.'), {}),
    ended(toolCall('fc_a', '{"a":1}'), {}),
    ended(toolCall('fc_b', '{"a":2}'), {}),
  ]
  const output = [
    { ...reasoning, content: [{ type: 'reasoning_text', text: 'Hm.' }] },
    saying('Adding.'),
    toolCall('fc_a', '{"a":1}'),
    toolCall('fc_b', '{"a":2}'),
  ]

  test('emits everything once and in order', () => {
    const decoded = decode([...start, ...rest, completed(output)])
    expect(blocksOf(decoded)).toEqual([
      { reasoning: ['Hm.'] },
      { text: 'Adding.' },
      { call: 'add', id: 'fc_a', input: '{"a":1}' },
      { call: 'add', id: 'fc_b', input: '{"a":2}' },
    ])
  })

  test('names the call of each delta by its call id', () => {
    const decoded = decode([
      created,
      added(toolCall('fc_a', ''), {}),
      fcDelta('{"a":', 'fc_a'),
      added(toolCall('fc_b', ''), {}),
      fcDelta('{"b":', 'fc_b'),
      fcDelta('1}', 'fc_a'),
      fcDelta('2}', 'fc_b'),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([
      { call: 'add', id: 'fc_a', input: '{"a":1}' },
      { call: 'add', id: 'fc_b', input: '{"b":2}' },
    ])
  })

  test('does not delay the answer until the end of the reasoning', () => {
    const events: GenerationEvent[] = []
    const decoder = openDecoder()
    for (const payload of start) {
      decoder.push({ event: '', data: JSON.stringify(payload) }, events)
    }
    expect(blocksOf({ events })).toEqual([{ reasoning: ['Hm.'] }, { text: 'Adding.' }])
  })
})

describe('concurrent items', () => {
  const second = { ...call, id: 'fc_2', call_id: 'call_2', name: 'sub' }
  const at = (id: string, index: number) => ({ item_id: id, output_index: index })

  test('calls: the second waits until the first has ended', () => {
    const decoded = decode([
      created,
      added(call),
      added(second, { output_index: 1 }),
      input('{"b":', at('fc_2', 1)),
      input('{"a":', at('fc_1', 0)),
      input('2}', at('fc_2', 1)),
      input('1}', at('fc_1', 0)),
      ended({ ...second, arguments: '{"b":2}' }, { output_index: 1 }),
      ended({ ...call, arguments: '{"a":1}' }),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([
      { call: 'add', id: 'call_1', input: '{"a":1}' },
      { call: 'sub', id: 'call_2', input: '{"b":2}' },
    ])
  })

  /** The blocks of a stream that has not ended. */
  const soFar = (payloads: readonly unknown[]) => {
    const events: GenerationEvent[] = []
    const decoder = openDecoder()
    for (const payload of payloads) {
      decoder.push({ event: '', data: JSON.stringify(payload) }, events)
    }
    return blocksOf({ events })
  }

  test('complete arguments let the next call begin at once', () => {
    const payloads = [
      created,
      added(call),
      input('{"a":1}'),
      added(second, { output_index: 1 }),
      input('{"b":2}', at('fc_2', 1)),
      { type: 'response.function_call_arguments.done', ...at('fc_1', 0), arguments: '{"a":1}' },
    ]
    const expected = [
      { call: 'add', id: 'call_1', input: '{"a":1}' },
      { call: 'sub', id: 'call_2', input: '{"b":2}' },
    ]
    expect(soFar(payloads)).toEqual(expected)
    // Later pieces of the first call are too late.
    const late = [input(' '), ended({ ...call, arguments: '{"a":1} ' }), completed()]
    expect(blocksOf(decode([...payloads, ...late]))).toEqual(expected)
  })

  test('complete text lets the next message begin at once', () => {
    const payloads = [
      created,
      added(message),
      text('A'),
      added({ ...message, id: 'msg_2' }, { output_index: 1 }),
      text('X', at('msg_2', 1)),
    ]
    const done = { type: 'response.output_text.done', ...at('msg_1', 0), text: 'A' }
    expect(soFar(payloads)).toEqual([{ text: 'A' }])
    expect(soFar([...payloads, done])).toEqual([{ text: 'A' }, { text: 'X' }])
  })

  test('an unannounced item does not delay other items', () => {
    expect(soFar([created, text('A', at('a', 0)), text('X', at('x', 1))])).toEqual([
      { text: 'A' },
      { text: 'X' },
    ])
  })

  test('messages', () => {
    const other = { ...message, id: 'msg_2' }
    const decoded = decode([
      created,
      added(message),
      added(other, { output_index: 1 }),
      text('A', at('msg_1', 0)),
      text('X', at('msg_2', 1)),
      text('B', at('msg_1', 0)),
      text('Y', at('msg_2', 1)),
      ended({ ...saying('XY'), id: 'msg_2' }, { output_index: 1 }),
      ended(saying('AB')),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'AB' }, { text: 'XY' }])
  })

  test('text that continues after it yielded is complete', () => {
    const decoded = decode([
      created,
      added(message),
      text('Adding. ', at('msg_1', 0)),
      added({ ...call }, { output_index: 1 }),
      input('{"a":', at('fc_1', 1)),
      text('Done.', at('msg_1', 0)),
      input('1}', at('fc_1', 1)),
      ended({ ...call, arguments: '{"a":1}' }, { output_index: 1 }),
      ended(saying('Adding. Done. Bye.')),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([
      { text: 'Adding. ' },
      { call: 'add', id: 'call_1', input: '{"a":1}' },
      { text: 'Done. Bye.' },
    ])
  })

  test('a sealed payload that arrives after its reasoning yielded is kept', () => {
    const sealed = {
      ...reasoning,
      content: [{ type: 'reasoning_text', text: 'Hm.' }],
      encrypted_content: 'gAAA',
    }
    const decoded = decode([
      created,
      added(reasoning),
      thought('Hm.'),
      added(message, { output_index: 1 }),
      text('Hi', at('msg_1', 1)),
      ended(sealed),
      text(' you', at('msg_1', 1)),
      ended(saying('Hi you'), { output_index: 1 }),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([
      { reasoning: ['Hm.'] },
      { text: 'Hi' },
      { reasoning: [], sealed: 'gAAA' },
      { text: ' you' },
    ])
  })

  test('buffered events are released from the count', () => {
    const half = 'x'.repeat(5_000_000)
    const waiting = (place: number) => [
      added({ ...message, id: `a_${place}` }, {}),
      text('A', { item_id: `a_${place}` }),
      added({ ...message, id: `b_${place}` }, {}),
      text(half, { item_id: `b_${place}` }),
      ended({ ...message, id: `a_${place}` }, {}),
      ended({ ...message, id: `b_${place}` }, {}),
    ]
    const decoded = decode([created, ...waiting(1), ...waiting(2), completed()])
    expect(decoded.error).toBeNull()
    expect(blocksOf(decoded)).toHaveLength(4)
  })

  test('the buffer is bounded', () => {
    const megabyte = 'x'.repeat(1_000_000)
    const decoded = decode([
      created,
      added(message),
      text('A'),
      added({ ...message, id: 'msg_2' }, { output_index: 1 }),
      ...Array.from({ length: 9 }, () => text(megabyte, at('msg_2', 1))),
      completed(),
    ])
    expect(decoded.error?.kind).toBe('upstream_invalid_answer')
    expect(blocksOf(decoded)).toEqual([{ text: 'A' }])
  })

  test('the number of items is bounded', () => {
    const many = Array.from({ length: 5_000 }, (_, index) =>
      added({ ...message, id: `msg_${index}` }, { output_index: index }),
    )
    expect(decode([created, ...many]).error?.kind).toBe('upstream_invalid_answer')
  })
})
