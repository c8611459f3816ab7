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
  textDelta,
} from './payloads.ts'

describe('parts of a message', () => {
  const partAt = (index: number) => ({ item_id: 'msg_1', output_index: 0, content_index: index })
  const open = (index: number, type = 'output_text') => ({
    type: 'response.content_part.added',
    ...partAt(index),
    part: { type, text: '' },
  })

  test('each is a block', () => {
    const decoded = decode([
      created,
      itemAdded(message),
      open(0),
      textDelta('One.', partAt(0)),
      open(1),
      textDelta('Two.', partAt(1)),
      itemDone(messageWith('One.', 'Two.')),
      completed([messageWith('One.', 'Two.')]),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'One.' }, { text: 'Two.' }])
  })

  test('one that was not streamed is added', () => {
    const decoded = decode([
      created,
      itemAdded(message),
      textDelta('One.'),
      itemDone(messageWith('One.', 'Two.')),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'One.' }, { text: 'Two.' }])
  })

  test('a repeated or late announcement does not split the text', () => {
    const decoded = decode([
      created,
      itemAdded(message),
      textDelta('Hel', partAt(0)),
      open(0),
      textDelta('l', partAt(0)),
      open(0),
      textDelta('o', partAt(0)),
      itemDone(messageWith('Hello')),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'Hello' }])
  })

  test('a refusal is a block of its own form', () => {
    const refusal = { type: 'refusal', refusal: 'I cannot help.' }
    const decoded = decode([
      created,
      itemAdded(message),
      open(0),
      textDelta('Well. ', partAt(0)),
      open(1, 'refusal'),
      { type: 'response.refusal.delta', ...partAt(1), delta: 'I cannot' },
      { type: 'response.refusal.done', ...partAt(1), refusal: 'I cannot help.' },
      { type: 'response.content_part.done', ...partAt(1), part: refusal },
      itemDone({ ...message, content: [...messageWith('Well. ').content, refusal] }),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([
      { text: 'Well. ' },
      { text: 'I cannot help.', form: 'refusal' },
    ])
  })

  test('a refusal that only the final event contains keeps its form', () => {
    const refusal = { type: 'refusal', refusal: 'No.' }
    const decoded = decode([created, completed([{ ...message, content: [refusal] }])])
    expect(blocksOf(decoded)).toEqual([{ text: 'No.', form: 'refusal' }])
  })

  test('a part that is complete at once has its log probabilities', () => {
    const logprobs = [{ token: 'Hi', logprob: -1, bytes: null, top_logprobs: [] }]
    const part = { type: 'output_text', text: 'Hi', logprobs }
    const done = { type: 'response.content_part.done', ...partAt(0), part }
    const decoded = decode([created, itemAdded(message), done, completed()], { logprobs: true })
    expect(blocksOf(decoded)).toMatchObject([{ text: 'Hi', logprobs: [{ token: 'Hi' }] }])
  })

  test('a phase is kept with its text', () => {
    const decoded = decode([
      created,
      itemAdded({ ...message, phase: 'commentary' }),
      textDelta('Looking.'),
      itemDone({ ...messageWith('Looking.'), phase: 'commentary' }),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'Looking.', phase: 'commentary' }])
  })

  test('log probabilities accompany the deltas if requested', () => {
    const token = { token: 'é', logprob: -0.5, bytes: null, top_logprobs: [] }
    const top = [{ token: 'e', logprob: -1, bytes: [101] }]
    const delta = { ...textDelta('é'), logprobs: [{ ...token, top_logprobs: top }] }
    const payloads = [created, itemAdded(message), delta, completed()]
    expect(blocksOf(decode(payloads, { logprobs: true }))).toEqual([
      {
        text: 'é',
        logprobs: [{ token: 'é', logprob: -0.5, bytes: [195, 169], top }],
      },
    ])
    expect(blocksOf(decode(payloads))).toEqual([{ text: 'é' }])
    const end = {
      type: 'response.output_text.done',
      ...partAt(0),
      text: 'é!',
      logprobs: [token, { ...token, token: '!' }],
    }
    const partly = decode([created, itemAdded(message), delta, end, completed()], {
      logprobs: true,
    })
    expect(blocksOf(partly)).toMatchObject([{ text: 'é!', logprobs: [{ token: 'é' }] }])
    const wholly = decode([created, itemAdded(message), end, completed()], { logprobs: true })
    expect(blocksOf(wholly)).toMatchObject([{ logprobs: [{ token: 'é' }, { token: '!' }] }])
  })
})

describe('citations', () => {
  const at = { item_id: 'msg_1', output_index: 0, content_index: 0 }
  const url = {
    type: 'url_citation',
    url: 'https://a.test/',
    title: 'A',
    start_index: 0,
    end_index: 2,
  }
  const file = { type: 'file_citation', file_id: 'file_1', filename: 'a.pdf', index: 3 }
  const inContainer = {
    type: 'container_file_citation',
    container_id: 'cntr_1',
    file_id: 'cfile_1',
    filename: 'a.txt',
    start_index: 4,
    end_index: 9,
  }
  const annotation = (of: unknown) => ({
    type: 'response.output_text.annotation.added',
    ...at,
    annotation_index: 0,
    annotation: of,
  })
  const cited = (...annotations: unknown[]) => ({
    ...message,
    content: [{ type: 'output_text', text: 'Hi', annotations }],
  })
  const container = { id: 'cntr_1', endIndex: 9 }
  const expected = [
    { kind: 'url' as const, url: 'https://a.test/', title: 'A', startIndex: 0, endIndex: 2 },
    { kind: 'file' as const, fileId: 'file_1', filename: 'a.pdf', index: 3 },
    { kind: 'file' as const, fileId: 'cfile_1', filename: 'a.txt', index: 4, container },
  ]

  test('of each kind are emitted once although the end repeats them', () => {
    const streamed = [url, file, inContainer].map(annotation)
    const end = cited(url, file, inContainer)
    const decoded = decode([
      created,
      itemAdded(message),
      textDelta('Hi'),
      ...streamed,
      itemDone(end),
      completed([end]),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'Hi', citations: expected }])
  })

  test('those that were not streamed are added from the finished item', () => {
    const end = cited(url, file, inContainer)
    const decoded = decode([
      created,
      itemAdded(message),
      textDelta('Hi'),
      annotation(url),
      itemDone(end),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'Hi', citations: expected }])
  })

  test('one without text is emitted as well, unless its item has ended', () => {
    const end = itemDone({ ...message, content: [] })
    const decoded = decode([created, itemAdded(message), annotation(url), end, completed()])
    expect(blocksOf(decoded)).toEqual([{ text: '', citations: expected.slice(0, 1) }])
    const late = decode([created, itemAdded(message), end, annotation(url), completed()])
    expect(blocksOf(late)).toEqual([])
  })

  test('those of an ended text are not added to the next one', () => {
    const end = {
      ...message,
      content: [...cited(url).content, { type: 'output_text', text: 'Ho', annotations: [file] }],
    }
    const decoded = decode([
      created,
      itemAdded(message),
      textDelta('Hi'),
      { type: 'response.output_text.done', ...at, text: 'Hi' },
      textDelta('Ho'),
      itemDone(end),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([
      { text: 'Hi' },
      { text: 'Ho', citations: expected.slice(1, 2) },
    ])
  })

  test('one that arrives after its text yielded opens no new text', () => {
    const decoded = decode([
      created,
      itemAdded(message),
      textDelta('Hi'),
      itemAdded(call, { output_index: 1 }),
      annotation(url),
      itemDone({ ...call, arguments: '{}' }, { output_index: 1 }),
      itemDone(cited(url)),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'Hi' }, { call: 'add', id: 'call_1', input: '{}' }])
  })

  test('an annotation of an unknown type is dropped', () => {
    const other = { type: 'file_path', file_id: 'file_1', index: 0 }
    const end = cited(other, url)
    const decoded = decode([
      created,
      itemAdded(message),
      textDelta('Hi'),
      annotation(other),
      itemDone(end),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'Hi', citations: expected.slice(0, 1) }])
  })
})
