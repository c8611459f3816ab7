import { describe, expect, test } from 'bun:test'
import { blocksOf } from '#test/inference/upstreams/responses/decoding.ts'
import { checkMessageStream } from '#test/support/message-frames.ts'
import {
  blockDelta,
  blockStart,
  blockStop,
  type Decoded,
  decode,
  emptyText,
  emptyThinking,
  inputDelta,
  messageDelta,
  messageStart,
  messageStop,
  signature,
  text,
  textBlock,
  thinkingDelta,
  toolUse,
  wireOf,
} from './decoding.ts'

const run = (...payloads: unknown[]) =>
  decode([messageStart, ...payloads, messageDelta(), messageStop])

/** The blocks of the events, after a strict client decoded the same blocks from the frames. */
function blocksIn(decoded: Decoded) {
  expect(decoded.error).toBeNull()
  checkMessageStream(wireOf(decoded.frames))
  return blocksOf(decoded)
}

const one = { call: 'look', id: 'toolu_1', input: '{"a":1}' }
const two = { call: 'look', id: 'toolu_2', input: '{"a":2}' }
const callOne = toolUse('toolu_1', 'look')
const callTwo = toolUse('toolu_2', 'look')

describe('blocks are sequential', () => {
  test('interleaved calls', () => {
    const decoded = run(
      blockStart(callOne, 0),
      inputDelta('{"a":', 0),
      blockStart(callTwo, 1),
      inputDelta('{"a":', 1),
      inputDelta('1}', 0),
      inputDelta('2}', 1),
      blockStop(1),
      blockStop(0),
    )
    expect(blocksIn(decoded)).toEqual([one, two])
  })

  test('text that is interleaved with a call is emitted after the call', () => {
    const decoded = run(
      blockStart(callOne, 0),
      blockStart(emptyText, 1),
      text('Hi', 1),
      blockStop(1),
      inputDelta('{"a":1}', 0),
      blockStop(0),
    )
    expect(blocksIn(decoded)).toEqual([one, { text: 'Hi' }])
  })

  test('thinking yields to text and continues in a new block', () => {
    const decoded = run(
      blockStart(emptyThinking, 0),
      thinkingDelta('Hm', 0),
      blockStart(emptyText, 1),
      text('Yes', 1),
      thinkingDelta(', and', 0),
      text('!', 1),
      blockStop(0),
      blockStop(1),
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
      blockStart(emptyText, first),
      text('Hi', first),
      blockStop(first),
      blockStart(callOne, second),
      inputDelta('{"a":1}', second),
      blockStop(second),
    )
    expect(blocksIn(decoded)).toEqual([{ text: 'Hi' }, one])
  })

  test('two calls with the same index are distinct', () => {
    const calls = [
      blockStart(callOne),
      inputDelta('{"a":1}'),
      blockStart(callTwo),
      inputDelta('{"a":2}'),
    ]
    expect(blocksIn(run(...calls))).toEqual([one, two])
  })
})

describe('omitted fields are added', () => {
  test('stops', () => {
    const decoded = run(
      blockStart(emptyThinking, 0),
      thinkingDelta('Hm', 0),
      blockStart(emptyText, 1),
      text('Hi', 1),
      blockStart(callOne, 2),
      inputDelta('{"a":1}', 2),
    )
    expect(blocksIn(decoded)).toEqual([{ reasoning: ['Hm'] }, { text: 'Hi' }, one])
  })

  test('starts of text and thinking', () => {
    const decoded = run(thinkingDelta('Hm', 0), text('Hi', 1), blockStop(1))
    expect(blocksIn(decoded)).toEqual([{ reasoning: ['Hm'] }, { text: 'Hi' }])
  })

  test('the start of the message', () => {
    expect(blocksIn(decode([...textBlock('Hi'), messageDelta(), messageStop]))).toEqual([
      { text: 'Hi' },
    ])
  })

  test('the fields of empty blocks', () => {
    const decoded = run(
      blockStart({ type: 'thinking' }, 0),
      thinkingDelta('Hm', 0),
      blockStart({ type: 'text' }, 1),
      text('Hi', 1),
      blockStart({ type: 'tool_use', name: 'look', caller: null }, 2),
      inputDelta('{"a":1}', 2),
    )
    expect(blocksIn(decoded)).toMatchObject([
      { reasoning: ['Hm'] },
      { text: 'Hi' },
      { call: 'look', input: '{"a":1}', id: expect.stringMatching(/^toolu_\w+$/) },
    ])
  })

  test('counts', () => {
    const head = { ...messageStart.message, usage: undefined }
    const start = { type: 'message_start', message: head }
    const end = { type: 'message_delta', delta: { stop_reason: 'end_turn' } }
    expect(blocksIn(decode([start, ...textBlock('Hi'), end, messageStop]))).toEqual([
      { text: 'Hi' },
    ])
  })

  test('a turn with calls ends with tool-calls', () => {
    const decoded = run(blockStart(callOne), inputDelta('{"a":1}'), blockStop())
    expect(decoded.events.at(-1)).toMatchObject({ reason: 'tool-calls', rawReason: 'end_turn' })
    expect(blocksIn(decoded)).toEqual([one])
  })
})

describe('content in a start', () => {
  test('text and thinking are emitted as deltas', () => {
    const decoded = run(
      blockStart({ type: 'thinking', thinking: 'Hm', signature: '' }, 0),
      thinkingDelta(', yes', 0),
      signature('sig', 0),
      blockStart({ type: 'text', text: 'Hel' }, 1),
      text('lo', 1),
      blockStop(1),
    )
    expect(blocksIn(decoded)).toEqual([
      { reasoning: ['Hm, yes'], sealed: 'sig' },
      { text: 'Hello' },
    ])
  })

  test('the input in the start of a call counts if no deltas follow', () => {
    const given = { ...callOne, input: { a: 1 } }
    expect(blocksIn(run(blockStart(given), blockStop()))).toEqual([one])
    expect(blocksIn(run(blockStart(callOne), inputDelta(''), blockStop()))).toEqual([
      { ...one, input: '{}' },
    ])
  })

  test('an id with invalid characters is re-encoded', () => {
    const [block] = blocksIn(run(blockStart(toolUse('functions.look:0', 'look')), inputDelta('{}')))
    expect(block).toMatchObject({ id: 'call64_ZnVuY3Rpb25zLmxvb2s6MA' })
  })
})

describe('empty blocks', () => {
  test('an empty text forms no block', () => {
    const decoded = run(
      blockStart(emptyText, 0),
      text('', 0),
      blockStop(0),
      blockStart(callOne, 1),
      inputDelta('{"a":1}', 1),
      blockStop(1),
    )
    expect(blocksIn(decoded)).toEqual([one])
  })

  test('a repeated start or stop', () => {
    const decoded = run(
      blockStart(emptyText),
      blockStart(emptyText),
      text('Hi'),
      blockStop(),
      blockStop(),
      blockStop(7),
    )
    expect(blocksIn(decoded)).toEqual([{ text: 'Hi' }])
    const repeatedCalls = run(
      blockStart(callOne, 0),
      inputDelta('{"a":', 0),
      blockStart(callOne, 0),
      blockStart(callTwo, 1),
      blockStart(callTwo, 1),
      inputDelta('1}', 0),
      inputDelta('{"a":2}', 1),
      blockStop(0),
      blockStop(1),
    )
    expect(blocksIn(repeatedCalls)).toEqual([one, two])
  })

  test('a delta that fits no block', () => {
    const decoded = run(
      signature('sig', 4),
      inputDelta('{', 5),
      ...textBlock('Hi'),
      blockDelta(null),
      blockDelta({}),
    )
    expect(blocksIn(decoded)).toEqual([{ text: 'Hi' }])
  })

  test('thinking inside a text is thinking', () => {
    expect(blocksIn(run(blockStart(emptyText), text('Hi'), thinkingDelta('Hm')))).toEqual([
      { text: 'Hi' },
      { reasoning: ['Hm'] },
    ])
  })
})

describe('blocks that cannot be ordered', () => {
  test('a call without a name', () => {
    const { error } = run(blockStart({ type: 'tool_use', id: 'toolu_1', input: {} }))
    expect(error?.kind).toBe('upstream_invalid_answer')
  })

  test('blocks without a stop', () => {
    const starts = Array.from({ length: 5_000 }, (_, at) =>
      blockStart(toolUse(`t_${at}`, 'look'), at),
    )
    expect(run(...starts).error?.kind).toBe('upstream_invalid_answer')
  })

  test('more than the buffer limit while another block is open', () => {
    const pieces = Array.from({ length: 9 }, () => inputDelta('x'.repeat(1_000_000), 1))
    const { error } = run(blockStart(callOne, 0), blockStart(callTwo, 1), ...pieces)
    expect(error?.kind).toBe('upstream_invalid_answer')
  })
})
