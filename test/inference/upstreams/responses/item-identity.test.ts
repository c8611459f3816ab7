import { describe, expect, test } from 'bun:test'
import { blocksOf, decode } from './decoding.ts'
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

describe('names of items', () => {
  test('an id that changes with each event is not needed with an index', () => {
    const at = (id: string, index: number) => ({ item_id: id, output_index: index })
    const decoded = decode([
      created,
      itemAdded({ ...reasoning, id: 'a' }),
      { type: 'response.reasoning_summary_text.delta', ...at('b', 0), delta: 'Hm.' },
      itemDone({ ...reasoning, id: 'c', summary: [{ type: 'summary_text', text: 'Hm.' }] }),
      itemAdded({ ...message, id: 'd' }, { output_index: 1 }),
      textDelta('Hel', at('e', 1)),
      textDelta('lo', at('f', 1)),
      { type: 'response.output_text.done', ...at('g', 1), text: 'Hello' },
      itemDone({ ...messageWith('Hello'), id: 'h' }, { output_index: 1 }),
      completed([{ ...reasoning, id: 'i', summary: [{ text: 'Hm.' }] }, messageWith('Hello')]),
    ])
    expect(blocksOf(decoded)).toEqual([{ reasoning: ['Hm.'] }, { text: 'Hello' }])
  })

  test('an index is not needed with an id', () => {
    const decoded = decode([
      created,
      itemAdded(message, {}),
      textDelta('Add', { item_id: 'msg_1' }),
      textDelta('ing', { item_id: 'msg_1' }),
      itemAdded(call, {}),
      argumentsDelta('{}', { item_id: 'fc_1' }),
      itemDone(messageWith('Adding'), {}),
      itemDone({ ...call, arguments: '{}' }, {}),
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
      itemAdded({ type: 'reasoning', summary: [] }, {}),
      thought('Hm.', {}),
      itemDone({ type: 'reasoning', content: [{ type: 'reasoning_text', text: 'Hm.' }] }, {}),
      itemAdded(nameless, {}),
      textDelta('Hi', {}),
      itemDone({ ...messageWith('Hi'), id: undefined }, {}),
      completed([messageWith('Hi')]),
    ])
    expect(blocksOf(decoded)).toEqual([{ reasoning: ['Hm.'] }, { text: 'Hi' }])
  })

  test('items that all have index 0 are kept apart', () => {
    const decoded = decode([
      created,
      itemAdded(message),
      textDelta('One moment.'),
      itemDone(messageWith('One moment.')),
      itemAdded(call),
      argumentsDelta('{"a":1}'),
      itemDone({ ...call, arguments: '{"a":1}' }),
      itemAdded({ ...call, id: 'fc_2', call_id: 'call_2' }),
      argumentsDelta('{"a":2}', { item_id: 'fc_2', output_index: 0 }),
      itemDone({ ...call, id: 'fc_2', call_id: 'call_2', arguments: '{"a":2}' }),
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
      itemAdded({ ...reasoning, id: 'item_0' }, {}),
      thought('Hm.', at),
      itemDone({ ...reasoning, id: 'item_0' }, {}),
      itemAdded({ ...message, id: 'item_0' }, {}),
      textDelta('Hi', at),
      itemDone({ ...messageWith('Hi'), id: 'item_0' }, {}),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([{ reasoning: ['Hm.'] }, { text: 'Hi' }])
  })

  test('items with the same id are kept apart, announced or not', () => {
    const at = { item_id: 'item_0' }
    const first = { ...messageWith('One.'), id: 'item_0' }
    const second = { ...messageWith('Two.'), id: 'item_0' }
    const announced = decode([
      created,
      itemAdded({ ...message, id: 'item_0' }, {}),
      textDelta('One.', at),
      itemDone(first, {}),
      itemAdded({ ...message, id: 'item_0' }, {}),
      textDelta('Two.', at),
      itemDone(second, {}),
      completed([first, second]),
    ])
    expect(blocksOf(announced)).toEqual([{ text: 'One.' }, { text: 'Two.' }])
    const callOf = (id: string) => ({ ...call, id: 'item_0', call_id: id, arguments: '{"a":1}' })
    const calls = decode([
      created,
      ...['call_1', 'call_2'].flatMap((id) => [
        itemAdded(callOf(id), {}),
        itemDone(callOf(id), {}),
      ]),
      completed(),
    ])
    expect(blocksOf(calls)).toEqual([
      { call: 'add', id: 'call_1', input: '{"a":1}' },
      { call: 'add', id: 'call_2', input: '{"a":1}' },
    ])
    const unannounced = decode([created, thought('Hm.', at), textDelta('Hi', at), completed()])
    expect(blocksOf(unannounced)).toEqual([{ reasoning: ['Hm.'] }, { text: 'Hi' }])
  })

  test('an index that only deltas have belongs to an item announced without one', () => {
    const at = { item_id: 'other', output_index: 3 }
    const decoded = decode([
      created,
      itemAdded(message, {}),
      textDelta('Hi', at),
      itemDone(messageWith('Hi'), {}),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'Hi' }])
  })

  test('an unknown index is a new item', () => {
    const decoded = decode([
      created,
      itemAdded(message),
      textDelta('One.', { output_index: 0 }),
      textDelta('Two.', { output_index: 1 }),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'One.' }, { text: 'Two.' }])
  })

  test('an end without identifiers is not assigned to another call', () => {
    const other = { ...call, id: undefined, call_id: 'call_2', arguments: '{"b":2}' }
    const decoded = decode([
      created,
      itemAdded(call),
      argumentsDelta('{"a":'),
      itemDone(other, {}),
      argumentsDelta('1}'),
      itemDone({ ...call, arguments: '{"a":1}' }),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([
      { call: 'add', id: 'call_1', input: '{"a":1}' },
      { call: 'add', id: 'call_2', input: '{"b":2}' },
    ])
  })

  test('items of the final event are matched by id, else by index', () => {
    const first = { ...messageWith('One.'), id: 'msg_1' }
    const second = { ...messageWith('Two.'), id: 'msg_2' }
    const byId = decode([
      created,
      itemAdded(message, {}),
      textDelta('On', { item_id: 'msg_1' }),
      itemAdded({ ...message, id: 'msg_2' }, {}),
      textDelta('Tw', { item_id: 'msg_2' }),
      completed([second, first]),
    ])
    expect(blocksOf(byId)).toEqual([{ text: 'One.' }, { text: 'Two.' }])
    const byPlace = decode([
      created,
      itemAdded(message, { output_index: 1 }),
      textDelta('Tw', { output_index: 1 }),
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
      itemAdded(message),
      textDelta('Hel'),
      completed([
        { ...reasoning, id: 'rs_x' },
        { ...messageWith('Hello'), id: 'msg_x' },
      ]),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'Hello' }])
  })
})
