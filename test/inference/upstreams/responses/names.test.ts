import { describe, expect, test } from 'bun:test'
import { blocksOf, decode } from './decoding.ts'
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

describe('names of items', () => {
  test('an id that changes with each event is not needed with an index', () => {
    const at = (id: string, index: number) => ({ item_id: id, output_index: index })
    const decoded = decode([
      created,
      added({ ...reasoning, id: 'a' }),
      { type: 'response.reasoning_summary_text.delta', ...at('b', 0), delta: 'Hm.' },
      ended({ ...reasoning, id: 'c', summary: [{ type: 'summary_text', text: 'Hm.' }] }),
      added({ ...message, id: 'd' }, { output_index: 1 }),
      text('Hel', at('e', 1)),
      text('lo', at('f', 1)),
      { type: 'response.output_text.done', ...at('g', 1), text: 'Hello' },
      ended({ ...saying('Hello'), id: 'h' }, { output_index: 1 }),
      completed([{ ...reasoning, id: 'i', summary: [{ text: 'Hm.' }] }, saying('Hello')]),
    ])
    expect(blocksOf(decoded)).toEqual([{ reasoning: ['Hm.'] }, { text: 'Hello' }])
  })

  test('an index is not needed with an id', () => {
    const decoded = decode([
      created,
      added(message, {}),
      text('Add', { item_id: 'msg_1' }),
      text('ing', { item_id: 'msg_1' }),
      added(call, {}),
      input('{}', { item_id: 'fc_1' }),
      ended(saying('Adding'), {}),
      ended({ ...call, arguments: '{}' }, {}),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([
      { text: 'Adding' },
      { call: 'add', id: 'call_1', input: '{}' },
    ])
  })

  test('neither is needed for sequential items', () => {
    const nameless = { ...message, id: undefined }
    const decoded = decode([
      created,
      added({ type: 'reasoning', summary: [] }, {}),
      thought('Hm.', {}),
      ended({ type: 'reasoning', content: [{ type: 'reasoning_text', text: 'Hm.' }] }, {}),
      added(nameless, {}),
      text('Hi', {}),
      ended({ ...saying('Hi'), id: undefined }, {}),
      completed([saying('Hi')]),
    ])
    expect(blocksOf(decoded)).toEqual([{ reasoning: ['Hm.'] }, { text: 'Hi' }])
  })

  test('items that all have index 0 are kept apart', () => {
    const decoded = decode([
      created,
      added(message),
      text('One moment.'),
      ended(saying('One moment.')),
      added(call),
      input('{"a":1}'),
      ended({ ...call, arguments: '{"a":1}' }),
      added({ ...call, id: 'fc_2', call_id: 'call_2' }),
      input('{"a":2}', { item_id: 'fc_2', output_index: 0 }),
      ended({ ...call, id: 'fc_2', call_id: 'call_2', arguments: '{"a":2}' }),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([
      { text: 'One moment.' },
      { call: 'add', id: 'call_1', input: '{"a":1}' },
      { call: 'add', id: 'call_2', input: '{"a":2}' },
    ])
  })

  test('items with the same id are kept apart', () => {
    const at = { item_id: 'item_0' }
    const decoded = decode([
      created,
      added({ ...reasoning, id: 'item_0' }, {}),
      thought('Hm.', at),
      ended({ ...reasoning, id: 'item_0' }, {}),
      added({ ...message, id: 'item_0' }, {}),
      text('Hi', at),
      ended({ ...saying('Hi'), id: 'item_0' }, {}),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([{ reasoning: ['Hm.'] }, { text: 'Hi' }])
  })

  test('items with the same id are kept apart, announced or not', () => {
    const at = { item_id: 'item_0' }
    const first = { ...saying('One.'), id: 'item_0' }
    const second = { ...saying('Two.'), id: 'item_0' }
    const announced = decode([
      created,
      added({ ...message, id: 'item_0' }, {}),
      text('One.', at),
      ended(first, {}),
      added({ ...message, id: 'item_0' }, {}),
      text('Two.', at),
      ended(second, {}),
      completed([first, second]),
    ])
    expect(blocksOf(announced)).toEqual([{ text: 'One.' }, { text: 'Two.' }])
    const callOf = (id: string) => ({ ...call, id: 'item_0', call_id: id, arguments: '{"a":1}' })
    const calls = decode([
      created,
      ...['call_1', 'call_2'].flatMap((id) => [added(callOf(id), {}), ended(callOf(id), {})]),
      completed(),
    ])
    expect(blocksOf(calls)).toEqual([
      { call: 'add', id: 'call_1', input: '{"a":1}' },
      { call: 'add', id: 'call_2', input: '{"a":1}' },
    ])
    const unannounced = decode([created, thought('Hm.', at), text('Hi', at), completed()])
    expect(blocksOf(unannounced)).toEqual([{ reasoning: ['Hm.'] }, { text: 'Hi' }])
  })

  test('an index that only deltas have belongs to an item announced without one', () => {
    const at = { item_id: 'other', output_index: 3 }
    const decoded = decode([
      created,
      added(message, {}),
      text('Hi', at),
      ended(saying('Hi'), {}),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'Hi' }])
  })

  test('an unknown index is a new item', () => {
    const decoded = decode([
      created,
      added(message),
      text('One.', { output_index: 0 }),
      text('Two.', { output_index: 1 }),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'One.' }, { text: 'Two.' }])
  })

  test('an end without identifiers is not assigned to another call', () => {
    const other = { ...call, id: undefined, call_id: 'call_2', arguments: '{"b":2}' }
    const decoded = decode([
      created,
      added(call),
      input('{"a":'),
      ended(other, {}),
      input('1}'),
      ended({ ...call, arguments: '{"a":1}' }),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([
      { call: 'add', id: 'call_1', input: '{"a":1}' },
      { call: 'add', id: 'call_2', input: '{"b":2}' },
    ])
  })

  test('items of the final event are matched by id, else by index', () => {
    const first = { ...saying('One.'), id: 'msg_1' }
    const second = { ...saying('Two.'), id: 'msg_2' }
    const byId = decode([
      created,
      added(message, {}),
      text('On', { item_id: 'msg_1' }),
      added({ ...message, id: 'msg_2' }, {}),
      text('Tw', { item_id: 'msg_2' }),
      completed([second, first]),
    ])
    expect(blocksOf(byId)).toEqual([{ text: 'One.' }, { text: 'Two.' }])
    const byPlace = decode([
      created,
      added(message, { output_index: 1 }),
      text('Tw', { output_index: 1 }),
      completed([
        { ...first, id: 'x' },
        { ...second, id: 'y' },
      ]),
    ])
    expect(blocksOf(byPlace)).toEqual([{ text: 'Two.' }, { text: 'One.' }])
  })

  test('the final event may use other ids than the stream', () => {
    const decoded = decode([
      created,
      added(message),
      text('Hel'),
      completed([
        { ...reasoning, id: 'rs_x' },
        { ...saying('Hello'), id: 'msg_x' },
      ]),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'Hello' }])
  })
})
