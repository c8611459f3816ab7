import { describe, expect, test } from 'bun:test'
import type { RequestItem } from '#inference/request.ts'
import {
  applyCompaction,
  type Compaction,
  divide,
  readCompaction,
  writeCompaction,
} from '#surfaces/responses/compacted-context.ts'

const message = (role: 'user' | 'assistant' | 'developer', text: string): RequestItem => ({
  type: 'message',
  role,
  parts: [{ type: 'text', text }],
})
const user = (text: string) => message('user', text)
const assistant = (text: string) => message('assistant', text)
const developer = (text: string) => message('developer', text)
const call = (callId: string): RequestItem => ({
  type: 'tool-call',
  callId,
  name: 'look',
  form: 'function',
  arguments: '{}',
})
const result = (callId: string, text = 'seen'): RequestItem => ({
  type: 'tool-result',
  callId,
  form: 'function',
  parts: [{ type: 'text', text }],
})
const thought: RequestItem = { type: 'reasoning', summary: [], text: 'Hm.' }

const textOf = (item: RequestItem) =>
  'parts' in item ? item.parts.map((part) => ('text' in part ? part.text : part.type)).join() : ''
const textsOf = (items: readonly RequestItem[]) => items.map(textOf)

const roomy = 1_000

/** Split, sealed, opened and inserted into the context. */
function compacted(items: readonly RequestItem[], after: readonly RequestItem[] = items) {
  const { instructions, questions, tail } = divide(items, roomy)
  const opened = readCompaction(
    writeCompaction({ summary: 'SUMMARY', instructions, questions, tail }),
  )
  if (opened === null) throw new Error('it was not read')
  return applyCompaction(after, opened)
}

describe('the kept context', () => {
  test('consists of user messages and instructions, after the summary', () => {
    const items = [
      developer('Be brief.'),
      user('one'),
      assistant('1'),
      thought,
      call('a'),
      result('a'),
      assistant('2'),
      user('two'),
    ]
    const kept = compacted(items)
    expect(textsOf(kept)).toEqual(['Be brief.', expect.stringContaining('SUMMARY'), 'one', 'two'])
    expect(kept[1]).toMatchObject({ type: 'message', role: 'developer' })
  })

  test('is the same whether a client drops the items before the compaction or sends them', () => {
    const items = [developer('Be brief.'), user('one'), assistant('1'), user('two')]
    expect(compacted(items, [])).toEqual(compacted(items))
  })

  test('uses the current instructions', () => {
    const items = [developer('Be brief.'), user('one'), assistant('1')]
    const kept = compacted(items, [developer('Be polite.'), user('one')])
    expect(textsOf(kept)[0]).toBe('Be polite.')
    expect(kept).toHaveLength(3)
  })

  test('keeps the newest user messages, and always the last one', () => {
    const long = 'word '.repeat(300)
    const userMessages = (...texts: string[]) =>
      divide(
        texts.flatMap((text) => [user(text), assistant('ok')]),
        400,
      ).questions.map(textOf)
    expect(userMessages('first', long, 'third')).toEqual(['first', long, 'third'])
    expect(userMessages('first', long, long, 'last')).toEqual([long, 'last'])
    expect(userMessages('first', long + long)).toEqual([long + long])
  })

  test('includes the previous summary, which is no instruction', () => {
    const once = compacted([user('one'), assistant('1'), user('two')])
    const twice = compacted([...once, assistant('2'), user('three')])
    expect(twice.filter((item) => textOf(item).includes('SUMMARY'))).toHaveLength(1)
    expect(textsOf(twice).slice(1)).toEqual(['one', 'two', 'three'])
  })

  test('needs no summary if it only has instructions, user messages and a summary', () => {
    expect(divide([developer('x'), user('one'), user('two')], roomy).hasRest).toBe(false)
    expect(divide(compacted([user('one'), assistant('1')]), roomy).hasRest).toBe(false)
    expect(divide([user('one'), assistant('1')], roomy).hasRest).toBe(true)
    expect(divide([user('word '.repeat(3_000)), user('two')], roomy).hasRest).toBe(true)
  })
})

describe('trailing tool calls', () => {
  const before = [user('one'), call('a'), result('a')]

  test('are kept with their results and the reasoning before them', () => {
    const last = [thought, call('b'), call('c'), result('b'), result('c')]
    expect(compacted([...before, ...last]).slice(2)).toEqual(last)
    expect(compacted(before).slice(2)).toEqual(before.slice(1))
  })

  test('are not kept if they are long', () => {
    const long = [call('b'), result('b', 'word '.repeat(3_000))]
    expect(divide([...before, ...long], roomy)).toMatchObject({ tail: [], hasRest: true })
  })

  test('without a result are kept, since the result follows', () => {
    const waiting = [call('b'), call('c'), result('c', 'word '.repeat(3_000))]
    expect(divide([...before, ...waiting], roomy).tail).toEqual(waiting)
  })

  test('before another message are part of the summary', () => {
    expect(divide([...before, call('b'), user('two')], roomy).tail).toEqual([])
  })
})

describe('sealed content', () => {
  const image = (chars: number): RequestItem => ({
    type: 'message',
    role: 'user',
    parts: [
      { type: 'text', text: 'See:' },
      { type: 'image', url: `data:image/png;base64,${'A'.repeat(chars)}`, detail: null },
    ],
  })
  const sealedQuestion = (item: RequestItem) => {
    const { questions } = divide([item], roomy)
    const plain = writeCompaction({ summary: '', instructions: [], questions, tail: [] })
    return readCompaction(plain)?.questions?.[0]
  }

  test('contains small images, and the names of large ones', () => {
    expect<unknown>(sealedQuestion(image(100))).toEqual(image(100))
    expect(sealedQuestion(image(2_000_000))?.parts).toEqual([
      { type: 'text', text: 'See:' },
      { type: 'text', text: '[an image]' },
    ])
  })

  test.each(['', 'null', '{}', '[]', '{"summary":"x","instructions":[],"questions":[]}'])(
    'that is not a compaction is ignored: %j',
    (plain) => {
      expect(readCompaction(plain)).toBeNull()
    },
  )

  test('uses the user messages before the item', () => {
    const compaction: Compaction = { summary: 'S', instructions: [], questions: null, tail: [] }
    const shown = [user('one'), assistant('never shown'), user('two')]
    expect(textsOf(applyCompaction(shown, compaction)).slice(1)).toEqual(['one', 'two'])
  })
})
