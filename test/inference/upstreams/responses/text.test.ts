import { describe, expect, test } from 'bun:test'
import { blocksOf, decode } from './decoding.ts'
import {
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

describe('text in other event formats', () => {
  const everywhere = { item_id: 'msg_1', output_index: 0, content_index: 0 }
  const part = { type: 'output_text', text: 'Hello', annotations: [] }
  const whole = {
    'the end of the text': [{ type: 'response.output_text.done', ...everywhere, text: 'Hello' }],
    'the end of the part': [{ type: 'response.content_part.done', ...everywhere, part }],
    'the end of the item': [itemDone(messageWith('Hello'))],
    'all ends': [
      { type: 'response.output_text.done', ...everywhere, text: 'Hello' },
      { type: 'response.content_part.done', ...everywhere, part },
      itemDone(messageWith('Hello')),
    ],
  }
  for (const [where, ends] of Object.entries(whole)) {
    test(`only in ${where} is emitted once`, () => {
      const decoded = decode([
        created,
        itemAdded(message),
        ...ends,
        completed([messageWith('Hello')]),
      ])
      expect(blocksOf(decoded)).toEqual([{ text: 'Hello' }])
    })

    test(`partly streamed, complete in ${where}: the rest is added`, () => {
      const decoded = decode([
        created,
        itemAdded(message),
        textDelta('He'),
        textDelta('l'),
        ...ends,
        completed(),
      ])
      expect(blocksOf(decoded)).toEqual([{ text: 'Hello' }])
    })

    test(`only in ${where}, without any announcement`, () => {
      const decoded = decode([created, ...ends, completed()])
      expect(blocksOf(decoded)).toEqual([{ text: 'Hello' }])
    })
  }

  test('only in the final event', () => {
    const decoded = decode([created, completed([reasoning, messageWith('Hello'), call])])
    expect(blocksOf(decoded)).toEqual([
      { text: 'Hello' },
      { call: 'add', id: 'call_1', input: '{}' },
    ])
  })

  test('in an item that ended empty, then in the final event', () => {
    const decoded = decode([
      created,
      itemAdded(message),
      itemDone(message),
      completed([messageWith('Hello')]),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'Hello' }])
  })

  test('only in the announcement of its item', () => {
    const decoded = decode([created, itemAdded(messageWith('Hello')), completed()])
    expect(blocksOf(decoded)).toEqual([{ text: 'Hello' }])
  })

  test('in a final event that contradicts the stream is neither retracted nor repeated', () => {
    const decoded = decode([
      created,
      itemAdded(message),
      textDelta('Hello'),
      completed([messageWith('Good day!')]),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'Hello' }])
  })

  test('as one item that ends as two is not emitted again', () => {
    const decoded = decode([
      created,
      itemAdded(message),
      textDelta('One. Two.'),
      itemDone(messageWith('One. Two.')),
      completed([messageWith('One. '), { ...messageWith('Two.'), id: 'msg_2' }]),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'One. Two.' }])
  })

  test('as one part that ends as two is not emitted again', () => {
    const decoded = decode([
      created,
      itemAdded(message),
      textDelta('One. Two.'),
      itemDone(messageWith('One. ', 'Two.')),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'One. Two.' }])
  })

  test('an item that only the final event contains is added', () => {
    const decoded = decode([
      created,
      itemAdded(message),
      textDelta('One.'),
      itemDone(messageWith('One.')),
      completed([messageWith('One.'), { ...messageWith('Two.'), id: 'msg_2' }, call]),
    ])
    expect(blocksOf(decoded)).toEqual([
      { text: 'One.' },
      { text: 'Two.' },
      { call: 'add', id: 'call_1', input: '{}' },
    ])
  })

  test('as deltas before the announcement of their item', () => {
    const decoded = decode([
      created,
      textDelta('Hel'),
      itemAdded(message),
      textDelta('lo'),
      itemDone(messageWith('Hello')),
      completed([messageWith('Hello')]),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'Hello' }])
  })

  test('as deltas of items that are never announced nor ended', () => {
    const decoded = decode([
      created,
      thought('Hm.', { item_id: 'rs_1' }),
      textDelta('Hello', { item_id: 'msg_1' }),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([{ reasoning: ['Hm.'] }, { text: 'Hello' }])
  })

  test('content as a string', () => {
    const decoded = decode([created, completed([{ ...message, content: 'Hello' }])])
    expect(blocksOf(decoded)).toEqual([{ text: 'Hello' }])
  })
})
