import { describe, expect, test } from 'bun:test'
import type { GenerationEvent } from '#inference/events.ts'
import { blocksOf, decode, openDecoder } from './decoding.ts'
import {
  argumentsDelta,
  call,
  completed,
  created,
  itemAdded,
  itemDone,
  message,
  messageWith,
  reasoning,
  textDelta,
  thought,
} from './payloads.ts'

describe('llama.cpp, which reports all ends at the end of the stream', () => {
  const fcDelta = (delta: string, id: string) => argumentsDelta(delta, { item_id: id })
  const toolCall = (id: string, args: string) => ({
    type: 'function_call',
    call_id: id,
    name: 'add',
    arguments: args,
    status: 'completed',
  })
  const start = [
    created,
    itemAdded({ ...reasoning, content: [], encrypted_content: '' }, {}),
    thought('Hm.', { item_id: 'rs_1' }),
    itemAdded(message, {}),
    {
      type: 'response.content_part.added',
      item_id: 'msg_1',
      part: { type: 'output_text', text: '' },
    },
    textDelta('Add', { item_id: 'msg_1' }),
    textDelta('ing.', { item_id: 'msg_1' }),
  ]
  const rest = [
    itemAdded(toolCall('fc_a', ''), {}),
    fcDelta('{"a":', 'fc_a'),
    fcDelta('1}', 'fc_a'),
    itemAdded(toolCall('fc_b', ''), {}),
    fcDelta('{"a":2}', 'fc_b'),
    itemDone(
      { ...reasoning, content: [{ type: 'reasoning_text', text: 'Hm.' }], encrypted_content: '' },
      {},
    ),
    { type: 'response.output_text.done', item_id: 'msg_1', text: 'Adding.' },
    itemDone(messageWith('Adding.'), {}),
    itemDone(toolCall('fc_a', '{"a":1}'), {}),
    itemDone(toolCall('fc_b', '{"a":2}'), {}),
  ]
  const output = [
    { ...reasoning, content: [{ type: 'reasoning_text', text: 'Hm.' }] },
    messageWith('Adding.'),
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
      itemAdded(toolCall('fc_a', ''), {}),
      fcDelta('{"a":', 'fc_a'),
      itemAdded(toolCall('fc_b', ''), {}),
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
      itemAdded(call),
      itemAdded(second, { output_index: 1 }),
      argumentsDelta('{"b":', at('fc_2', 1)),
      argumentsDelta('{"a":', at('fc_1', 0)),
      argumentsDelta('2}', at('fc_2', 1)),
      argumentsDelta('1}', at('fc_1', 0)),
      itemDone({ ...second, arguments: '{"b":2}' }, { output_index: 1 }),
      itemDone({ ...call, arguments: '{"a":1}' }),
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
      itemAdded(call),
      argumentsDelta('{"a":1}'),
      itemAdded(second, { output_index: 1 }),
      argumentsDelta('{"b":2}', at('fc_2', 1)),
      { type: 'response.function_call_arguments.done', ...at('fc_1', 0), arguments: '{"a":1}' },
    ]
    const expected = [
      { call: 'add', id: 'call_1', input: '{"a":1}' },
      { call: 'sub', id: 'call_2', input: '{"b":2}' },
    ]
    expect(soFar(payloads)).toEqual(expected)
    // Later pieces of the first call are too late.
    const late = [argumentsDelta(' '), itemDone({ ...call, arguments: '{"a":1} ' }), completed()]
    expect(blocksOf(decode([...payloads, ...late]))).toEqual(expected)
  })

  test('complete text lets the next message begin at once', () => {
    const payloads = [
      created,
      itemAdded(message),
      textDelta('A'),
      itemAdded({ ...message, id: 'msg_2' }, { output_index: 1 }),
      textDelta('X', at('msg_2', 1)),
    ]
    const done = { type: 'response.output_text.done', ...at('msg_1', 0), text: 'A' }
    expect(soFar(payloads)).toEqual([{ text: 'A' }])
    expect(soFar([...payloads, done])).toEqual([{ text: 'A' }, { text: 'X' }])
  })

  test('an unannounced item does not delay other items', () => {
    expect(soFar([created, textDelta('A', at('a', 0)), textDelta('X', at('x', 1))])).toEqual([
      { text: 'A' },
      { text: 'X' },
    ])
  })

  test('messages', () => {
    const other = { ...message, id: 'msg_2' }
    const decoded = decode([
      created,
      itemAdded(message),
      itemAdded(other, { output_index: 1 }),
      textDelta('A', at('msg_1', 0)),
      textDelta('X', at('msg_2', 1)),
      textDelta('B', at('msg_1', 0)),
      textDelta('Y', at('msg_2', 1)),
      itemDone({ ...messageWith('XY'), id: 'msg_2' }, { output_index: 1 }),
      itemDone(messageWith('AB')),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'AB' }, { text: 'XY' }])
  })

  test('text that continues after it yielded is complete', () => {
    const decoded = decode([
      created,
      itemAdded(message),
      textDelta('Adding. ', at('msg_1', 0)),
      itemAdded({ ...call }, { output_index: 1 }),
      argumentsDelta('{"a":', at('fc_1', 1)),
      textDelta('Done.', at('msg_1', 0)),
      argumentsDelta('1}', at('fc_1', 1)),
      itemDone({ ...call, arguments: '{"a":1}' }, { output_index: 1 }),
      itemDone(messageWith('Adding. Done. Bye.')),
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
      itemAdded(reasoning),
      thought('Hm.'),
      itemAdded(message, { output_index: 1 }),
      textDelta('Hi', at('msg_1', 1)),
      itemDone(sealed),
      textDelta(' you', at('msg_1', 1)),
      itemDone(messageWith('Hi you'), { output_index: 1 }),
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
      itemAdded({ ...message, id: `a_${place}` }, {}),
      textDelta('A', { item_id: `a_${place}` }),
      itemAdded({ ...message, id: `b_${place}` }, {}),
      textDelta(half, { item_id: `b_${place}` }),
      itemDone({ ...message, id: `a_${place}` }, {}),
      itemDone({ ...message, id: `b_${place}` }, {}),
    ]
    const decoded = decode([created, ...waiting(1), ...waiting(2), completed()])
    expect(decoded.error).toBeNull()
    expect(blocksOf(decoded)).toHaveLength(4)
  })

  test('the buffer is bounded', () => {
    const megabyte = 'x'.repeat(1_000_000)
    const decoded = decode([
      created,
      itemAdded(message),
      textDelta('A'),
      itemAdded({ ...message, id: 'msg_2' }, { output_index: 1 }),
      ...Array.from({ length: 9 }, () => textDelta(megabyte, at('msg_2', 1))),
      completed(),
    ])
    expect(decoded.error?.kind).toBe('upstream_invalid_answer')
    expect(blocksOf(decoded)).toEqual([{ text: 'A' }])
  })

  test('the number of items is bounded', () => {
    const many = Array.from({ length: 5_000 }, (_, index) =>
      itemAdded({ ...message, id: `msg_${index}` }, { output_index: index }),
    )
    expect(decode([created, ...many]).error?.kind).toBe('upstream_invalid_answer')
  })
})
