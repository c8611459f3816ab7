import { describe, expect, test } from 'bun:test'
import { blocksOf } from '#test/inference/upstreams/responses/decoding.ts'
import { checkMessageStream } from '#test/support/message-frames.ts'
import {
  begun,
  called,
  type Decoded,
  decode,
  ended,
  grown,
  input,
  opened,
  over,
  saying,
  signature,
  stopped,
  text,
  textShell,
  thinkingShell,
  thought,
  wireOf,
} from './decoding.ts'

const run = (...payloads: unknown[]) => decode([begun, ...payloads, ended(), over])

/** The blocks of the events, after a strict client decoded the same blocks from the frames. */
function blocksIn(decoded: Decoded) {
  expect(decoded.error).toBeNull()
  checkMessageStream(wireOf(decoded.frames))
  return blocksOf(decoded)
}

const one = { call: 'look', id: 'toolu_1', input: '{"a":1}' }
const two = { call: 'look', id: 'toolu_2', input: '{"a":2}' }
const callOne = called('toolu_1', 'look')
const callTwo = called('toolu_2', 'look')

describe('blocks are sequential', () => {
  test('interleaved calls', () => {
    const decoded = run(
      opened(callOne, 0),
      input('{"a":', 0),
      opened(callTwo, 1),
      input('{"a":', 1),
      input('1}', 0),
      input('2}', 1),
      stopped(1),
      stopped(0),
    )
    expect(blocksIn(decoded)).toEqual([one, two])
  })

  test('text that is interleaved with a call is emitted after the call', () => {
    const decoded = run(
      opened(callOne, 0),
      opened(textShell, 1),
      text('Hi', 1),
      stopped(1),
      input('{"a":1}', 0),
      stopped(0),
    )
    expect(blocksIn(decoded)).toEqual([one, { text: 'Hi' }])
  })

  test('thinking yields to text and continues in a new block', () => {
    const decoded = run(
      opened(thinkingShell, 0),
      thought('Hm', 0),
      opened(textShell, 1),
      text('Yes', 1),
      thought(', and', 0),
      text('!', 1),
      stopped(0),
      stopped(1),
    )
    expect(blocksIn(decoded)).toEqual([
      { reasoning: ['Hm'] },
      { text: 'Yes' },
      { reasoning: [', and'] },
      { text: '!' },
    ])
  })
})

describe('indices have no gaps', () => {
  test.each([
    ['beginning at 1', [1, 2]],
    ['with holes', [3, 17]],
    ['all 0', [0, 0]],
    ['left out', [null, null]],
  ])('%s', (_, [first = null, second = null]) => {
    const decoded = run(
      opened(textShell, first),
      text('Hi', first),
      stopped(first),
      opened(callOne, second),
      input('{"a":1}', second),
      stopped(second),
    )
    expect(blocksIn(decoded)).toEqual([{ text: 'Hi' }, one])
  })

  test('two calls with the same index are distinct', () => {
    const calls = [opened(callOne), input('{"a":1}'), opened(callTwo), input('{"a":2}')]
    expect(blocksIn(run(...calls))).toEqual([one, two])
  })
})

describe('omitted fields are added', () => {
  test('stops', () => {
    const decoded = run(
      opened(thinkingShell, 0),
      thought('Hm', 0),
      opened(textShell, 1),
      text('Hi', 1),
      opened(callOne, 2),
      input('{"a":1}', 2),
    )
    expect(blocksIn(decoded)).toEqual([{ reasoning: ['Hm'] }, { text: 'Hi' }, one])
  })

  test('starts of text and thinking', () => {
    const decoded = run(thought('Hm', 0), text('Hi', 1), stopped(1))
    expect(blocksIn(decoded)).toEqual([{ reasoning: ['Hm'] }, { text: 'Hi' }])
  })

  test('the start of the message', () => {
    expect(blocksIn(decode([...saying('Hi'), ended(), over]))).toEqual([{ text: 'Hi' }])
  })

  test('the fields of empty blocks', () => {
    const decoded = run(
      opened({ type: 'thinking' }, 0),
      thought('Hm', 0),
      opened({ type: 'text' }, 1),
      text('Hi', 1),
      opened({ type: 'tool_use', name: 'look', caller: null }, 2),
      input('{"a":1}', 2),
    )
    expect(blocksIn(decoded)).toMatchObject([
      { reasoning: ['Hm'] },
      { text: 'Hi' },
      { call: 'look', input: '{"a":1}', id: expect.stringMatching(/^toolu_\w+$/) },
    ])
  })

  test('counts', () => {
    const head = { ...begun.message, usage: undefined }
    const start = { type: 'message_start', message: head }
    const end = { type: 'message_delta', delta: { stop_reason: 'end_turn' } }
    expect(blocksIn(decode([start, ...saying('Hi'), end, over]))).toEqual([{ text: 'Hi' }])
  })

  test('a turn with calls ends with tool-calls', () => {
    const decoded = run(opened(callOne), input('{"a":1}'), stopped())
    expect(decoded.events.at(-1)).toMatchObject({ reason: 'tool-calls', rawReason: 'end_turn' })
    expect(blocksIn(decoded)).toEqual([one])
  })
})

describe('content in a start', () => {
  test('text and thinking are emitted as deltas', () => {
    const decoded = run(
      opened({ type: 'thinking', thinking: 'Hm', signature: '' }, 0),
      thought(', yes', 0),
      signature('sig', 0),
      opened({ type: 'text', text: 'Hel' }, 1),
      text('lo', 1),
      stopped(1),
    )
    expect(blocksIn(decoded)).toEqual([
      { reasoning: ['Hm, yes'], sealed: 'sig' },
      { text: 'Hello' },
    ])
  })

  test('the input in the start of a call counts if no deltas follow', () => {
    const given = { ...callOne, input: { a: 1 } }
    expect(blocksIn(run(opened(given), stopped()))).toEqual([one])
    expect(blocksIn(run(opened(callOne), input(''), stopped()))).toEqual([{ ...one, input: '{}' }])
  })

  test('an id with invalid characters is re-encoded', () => {
    const [block] = blocksIn(run(opened(called('functions.look:0', 'look')), input('{}')))
    expect(block).toMatchObject({ id: 'call64_ZnVuY3Rpb25zLmxvb2s6MA' })
  })
})

describe('empty blocks', () => {
  test('an empty text forms no block', () => {
    const decoded = run(
      opened(textShell, 0),
      text('', 0),
      stopped(0),
      opened(callOne, 1),
      input('{"a":1}', 1),
      stopped(1),
    )
    expect(blocksIn(decoded)).toEqual([one])
  })

  test('a repeated start or stop', () => {
    const decoded = run(
      opened(textShell),
      opened(textShell),
      text('Hi'),
      stopped(),
      stopped(),
      stopped(7),
    )
    expect(blocksIn(decoded)).toEqual([{ text: 'Hi' }])
  })

  test('a delta that fits no block', () => {
    const decoded = run(signature('sig', 4), input('{', 5), ...saying('Hi'), grown(null), grown({}))
    expect(blocksIn(decoded)).toEqual([{ text: 'Hi' }])
  })

  test('thinking inside a text is thinking', () => {
    expect(blocksIn(run(opened(textShell), text('Hi'), thought('Hm')))).toEqual([
      { text: 'Hi' },
      { reasoning: ['Hm'] },
    ])
  })
})

describe('blocks that cannot be ordered', () => {
  test('a call without a name', () => {
    const { error } = run(opened({ type: 'tool_use', id: 'toolu_1', input: {} }))
    expect(error?.kind).toBe('upstream_invalid_answer')
  })

  test('blocks without a stop', () => {
    const starts = Array.from({ length: 5_000 }, (_, at) => opened(called(`t_${at}`, 'look'), at))
    expect(run(...starts).error?.kind).toBe('upstream_invalid_answer')
  })

  test('more than the buffer limit while another block is open', () => {
    const pieces = Array.from({ length: 9 }, () => input('x'.repeat(1_000_000), 1))
    const { error } = run(opened(callOne, 0), opened(callTwo, 1), ...pieces)
    expect(error?.kind).toBe('upstream_invalid_answer')
  })
})
