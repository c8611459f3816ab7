import { describe, expect, test } from 'bun:test'
import { blocksOf, decode } from './decoding.ts'
import {
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

describe('reasoning', () => {
  const summaryAt = (index: number) => ({ item_id: 'rs_1', output_index: 0, summary_index: index })
  const summary = (index: number, delta: string) => ({
    type: 'response.reasoning_summary_text.delta',
    ...summaryAt(index),
    delta,
  })
  const summarised = (...texts: string[]) => ({
    ...reasoning,
    summary: texts.map((each) => ({ type: 'summary_text', text: each })),
  })
  const raw = (...texts: string[]) => ({
    ...reasoning,
    content: texts.map((each) => ({ type: 'reasoning_text', text: each })),
  })

  test('summary parts are paragraphs of one block, announced or not', () => {
    const announcement = (index: number) => ({
      type: 'response.reasoning_summary_part.added',
      ...summaryAt(index),
      part: { type: 'summary_text', text: '' },
    })
    const end = [itemDone(summarised('One.', 'Two.')), completed([summarised('One.', 'Two.')])]
    const expected = [{ reasoning: ['One.', 'Two.'] }]
    const [first, second] = [summary(0, 'One.'), summary(1, 'Two.')]
    const start = [created, itemAdded(reasoning)]
    const announced = [...start, announcement(0), first, announcement(1), second, ...end]
    expect(blocksOf(decode(announced))).toEqual(expected)
    expect(blocksOf(decode([...start, first, second, ...end]))).toEqual(expected)
    expect(blocksOf(decode([...start, first, ...end]))).toEqual(expected)
    expect(blocksOf(decode([...start, ...end]))).toEqual(expected)
  })

  test('vLLM: reasoning_part events, a msg_ id, continued content indices', () => {
    const item = { type: 'reasoning', id: 'msg_a', summary: [] }
    const at = { item_id: 'msg_a', output_index: 0, content_index: 0 }
    const answerAt = { item_id: 'msg_b', output_index: 1, content_index: 1 }
    const part = { type: 'reasoning_text', text: 'Hm.' }
    const decoded = decode([
      created,
      itemAdded(item),
      { type: 'response.reasoning_part.added', ...at, part: { ...part, text: '' } },
      thought('H', at),
      thought('m.', at),
      { type: 'response.reasoning_text.done', ...at, text: 'Hm.' },
      { type: 'response.reasoning_part.done', ...at, part },
      itemDone({ ...item, content: [part] }),
      itemAdded({ ...message, id: 'msg_b' }, { output_index: 1 }),
      {
        type: 'response.content_part.added',
        ...answerAt,
        part: { type: 'output_text', text: '', annotations: [] },
      },
      textDelta('Hi', answerAt),
      { type: 'response.output_text.done', ...answerAt, text: 'Hi' },
      itemDone({ ...messageWith('Hi'), id: 'msg_b' }, { output_index: 1 }),
      completed([
        { ...item, id: 'rs_z', content: [part] },
        { ...messageWith('Hi'), id: 'msg_z' },
      ]),
    ])
    expect(blocksOf(decoded)).toEqual([{ reasoning: ['Hm.'] }, { text: 'Hi' }])
  })

  test('Open Responses: reasoning.delta and reasoning.done', () => {
    const at = { item_id: 'rs_1', output_index: 0, content_index: 0 }
    const decoded = decode([
      created,
      itemAdded(reasoning),
      { type: 'response.reasoning.delta', ...at, delta: 'H' },
      { type: 'response.reasoning.done', ...at, text: 'Hm.' },
      itemDone(raw('Hm.')),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([{ reasoning: ['Hm.'] }])
  })

  test('streamed as output text under the id of a reasoning item', () => {
    const decoded = decode([
      created,
      itemAdded(reasoning),
      textDelta('Hm.', { item_id: 'rs_1', output_index: 0 }),
      itemDone(raw('Hm.')),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([{ reasoning: ['Hm.'] }])
  })

  test('the same text in summary and content is emitted once', () => {
    const both = { ...summarised('Hm.'), content: raw('Hm.').content }
    expect(blocksOf(decode([created, completed([both])]))).toEqual([{ reasoning: ['Hm.'] }])
    const streamed = decode([
      created,
      itemAdded(reasoning),
      summary(0, 'Hm.'),
      itemDone(both),
      completed(),
    ])
    expect(blocksOf(streamed)).toEqual([{ reasoning: ['Hm.'] }])
    const moved = decode([
      created,
      itemAdded(reasoning),
      summary(0, 'Hm.'),
      itemDone(raw('Hm. ')),
      completed(),
    ])
    expect(blocksOf(moved)).toEqual([{ reasoning: ['Hm.'] }])
  })

  test('a summary is added to the raw text', () => {
    const both = { ...summarised('Short.'), content: raw('A long thought.').content }
    const decoded = decode([
      created,
      itemAdded(reasoning),
      thought('A long thought.'),
      itemDone(both),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([{ reasoning: ['A long thought.', 'Short.'] }])
  })

  test('one paragraph that ends as two is not emitted again', () => {
    const decoded = decode([
      created,
      itemAdded(reasoning),
      summary(0, 'One.Two.'),
      itemDone(summarised('One.', 'Two.')),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([{ reasoning: ['One.Two.'] }])
  })

  test('the same text with other divisions in the two carriers is emitted once', () => {
    const both = { ...summarised('One.', 'Two.'), content: raw('One.\n\nTwo.').content }
    expect(blocksOf(decode([created, completed([both])]))).toEqual([
      { reasoning: ['One.\n\nTwo.'] },
    ])
  })

  test('continues as a first paragraph after it yielded', () => {
    const decoded = decode([
      created,
      itemAdded(reasoning),
      thought('Hm'),
      itemAdded(message, { output_index: 1 }),
      textDelta('Hi', { item_id: 'msg_1', output_index: 1 }),
      thought(', yes.'),
      itemDone(messageWith('Hi'), { output_index: 1 }),
      itemDone(raw('Hm, yes.')),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([
      { reasoning: ['Hm'] },
      { text: 'Hi' },
      { reasoning: [', yes.'] },
    ])
  })

  test('a sealed payload without text is a block', () => {
    const sealed = { ...reasoning, encrypted_content: 'gAAA' }
    const expected = [{ reasoning: [], sealed: 'gAAA' }]
    expect(blocksOf(decode([created, itemAdded(sealed), itemDone(sealed), completed()]))).toEqual(
      expected,
    )
    expect(blocksOf(decode([created, completed([sealed])]))).toEqual(expected)
  })

  test('an empty payload is ignored, and an empty item forms no block', () => {
    const empty = { ...reasoning, encrypted_content: '', content: [] }
    expect(
      blocksOf(decode([created, itemAdded(empty), itemDone(empty), completed([empty])])),
    ).toEqual([])
  })
})
