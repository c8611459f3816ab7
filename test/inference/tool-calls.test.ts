import { describe, expect, test } from 'bun:test'
import type { GenerationEvent } from '#inference/events.ts'
import { type ToolCallPiece, ToolCalls } from '#inference/tool-calls.ts'

type Options = { custom?: string[]; takenCallIds?: string[]; heldCharsMax?: number }

function setUp({ custom = [], takenCallIds = [], heldCharsMax = 1_000 }: Options = {}) {
  let block = -1
  const out: GenerationEvent[] = []
  const calls = new ToolCalls({
    head: (name) => ({ name, form: custom.includes(name) ? 'custom' : 'function' }),
    openBlock: () => ++block,
    takenCallIds: new Set(takenCallIds),
    heldCharsMax,
  })
  return {
    out,
    count: () => calls.count,
    push: (piece: Partial<ToolCallPiece>) =>
      calls.push({ index: 0, indexGiven: true, id: '', name: '', text: '', ...piece }, out),
    close: (cut = false) => calls.close(out, cut),
    /** The calls as they are known now: name, arguments so far, and how each ended. */
    seen: () => summarize(out),
  }
}

function summarize(events: readonly GenerationEvent[]) {
  const calls: { id: string; name: string; text: string; end: boolean | null }[] = []
  for (const event of events) {
    if (event.type === 'tool-call-start') {
      calls.push({ id: event.call.callId, name: event.call.name, text: '', end: null })
    }
    const last = calls.at(-1)
    if (last === undefined) continue
    if (event.type === 'tool-call-delta') last.text += event.text
    if (event.type === 'tool-call-end') last.end = event.complete
  }
  return calls
}

const minted = expect.stringMatching(/^call_[0-9a-z]{20,}$/)

test('a call streams its arguments', () => {
  const { push, close, out } = setUp()
  push({ id: 'a', name: 'look' })
  push({ text: '{"x"' })
  push({ text: ':1}' })
  close()
  expect(out).toEqual([
    {
      type: 'tool-call-start',
      block: 0,
      call: { callId: 'a', name: 'look', form: 'function' },
    },
    { type: 'tool-call-delta', block: 0, text: '{"x"' },
    { type: 'tool-call-delta', block: 0, text: ':1}' },
    { type: 'tool-call-end', block: 0, complete: true },
  ])
})

test('arguments are held until the name is known', () => {
  const { push, seen } = setUp()
  push({ id: 'a', text: '{"x":' })
  expect(seen()).toEqual([])
  push({ name: 'look', text: '1}' })
  expect(seen()).toEqual([{ id: 'a', name: 'look', text: '{"x":1}', end: null }])
})

test('the first name counts', () => {
  const { push, close, seen } = setUp()
  push({ id: 'a', name: 'look', text: '{' })
  push({ name: 'look', text: '"x":' })
  push({ name: 'other', text: '1' })
  push({ name: 'look', text: '}' })
  push({ name: 'look' })
  close()
  expect(seen()).toEqual([{ id: 'a', name: 'look', text: '{"x":1}', end: true }])
})

describe('calls are distinguished', () => {
  const two = [
    { id: 'a', name: 'look', text: '{"x":1}', end: true },
    { id: 'b', name: 'find', text: '{"y":2}', end: true },
  ]

  test('by index', () => {
    const { push, close, seen } = setUp()
    push({ index: 0, id: 'a', name: 'look', text: '{"x":1}' })
    push({ index: 1, id: 'b', name: 'find', text: '{"y":' })
    push({ index: 1, text: '2}' })
    close()
    expect(seen()).toEqual(two)
  })

  test('by another id where every index is 0', () => {
    const { push, close, seen } = setUp()
    push({ index: 0, id: 'a', name: 'look', text: '{"x":1}' })
    push({ index: 0, id: 'b', name: 'find', text: '{"y":2}' })
    close()
    expect(seen()).toEqual(two)
  })

  test('by id where no index is sent, also when pieces alternate', () => {
    const { push, close, seen } = setUp()
    push({ indexGiven: false, id: 'a', name: 'look', text: '{"x"' })
    push({ indexGiven: false, id: 'b', name: 'find', text: '{"y"' })
    push({ indexGiven: false, id: 'a', text: ':1}' })
    push({ indexGiven: false, id: 'b', text: ':2}' })
    close()
    expect(seen()).toEqual(two)
  })

  test('by a name on an idle stream where neither is sent', () => {
    const { push, close, seen } = setUp()
    push({ indexGiven: false, name: 'look', text: '{"x"' })
    push({ indexGiven: false, text: ':1}' })
    push({ indexGiven: false, name: 'find', text: '{"y":2}' })
    close()
    expect(seen()).toEqual(two.map((call) => ({ ...call, id: minted })))
  })

  test('by the position in one list where neither is sent', () => {
    const { push, close, seen } = setUp()
    push({ index: 0, indexGiven: false, name: 'look', text: '{"x":1}' })
    push({ index: 1, indexGiven: false, name: 'find', text: '{"y":2}' })
    close()
    expect(seen()).toEqual(two.map((call) => ({ ...call, id: minted })))
  })

  test('by the arguments where the same tool is called twice without ids', () => {
    const { push, close, seen } = setUp()
    push({ name: 'look', text: '{"x":1}' })
    push({ name: 'look', text: '{"x":2}' })
    close()
    expect(seen().map(({ text }) => text)).toEqual(['{"x":1}', '{"x":2}'])
  })
})

describe('calls are emitted one after the other', () => {
  test('a later call waits until the arguments of the earlier one are complete', () => {
    const { push, close, seen } = setUp()
    push({ index: 0, id: 'a', name: 'look', text: '{"x":"}' })
    push({ index: 1, id: 'b', name: 'find', text: '{"y":2}' })
    expect(seen()).toEqual([{ id: 'a', name: 'look', text: '{"x":"}', end: null }])
    push({ index: 0, text: '\\"{"}' })
    expect(seen()).toEqual([
      { id: 'a', name: 'look', text: '{"x":"}\\"{"}', end: true },
      { id: 'b', name: 'find', text: '{"y":2}', end: null },
    ])
    close()
    expect(seen().at(-1)?.end).toBe(true)
  })

  test('the end of the response ends a call with incomplete arguments', () => {
    const { push, close, seen } = setUp()
    push({ index: 0, id: 'a', name: 'look', text: '{"x":' })
    push({ index: 1, id: 'b', name: 'find', text: '{}' })
    close()
    expect(seen()).toEqual([
      { id: 'a', name: 'look', text: '{"x":', end: true },
      { id: 'b', name: 'find', text: '{}', end: true },
    ])
  })

  test('held arguments are limited, streamed ones are not', () => {
    const { push } = setUp({ heldCharsMax: 100 })
    push({ index: 0, id: 'a', name: 'look', text: `{"x":"${'x'.repeat(1_000)}` })
    push({ index: 1, id: 'b', name: 'find', text: 'y'.repeat(100) })
    expect(() => push({ index: 1, text: 'y' })).toThrow('too many tool-call arguments')
  })

  test('the number of calls is limited', () => {
    const { push } = setUp()
    expect(() => {
      for (let index = 0; index < 2_000; index++) push({ index, name: 'look', text: '{}' })
    }).toThrow('too many tool calls')
  })

  test('arguments for an ended call are invalid, white space is not', () => {
    const { push } = setUp()
    push({ index: 0, id: 'a', name: 'look', text: '{}' })
    push({ index: 1, id: 'b', name: 'find', text: '{}' })
    push({ index: 0, text: ' \n' })
    expect(() => push({ index: 0, text: '{"x":1}' })).toThrow('a tool call that had ended')
  })
})

describe('call ids', () => {
  test('an empty, repeated, overlong or used id is replaced', () => {
    const { push, close, seen } = setUp({ takenCallIds: ['old'] })
    const long = 'x'.repeat(65)
    for (const [index, id] of ['', 'a', 'a', long, 'old'].entries()) {
      push({ index, id, name: 'look', text: '{}' })
    }
    close()
    const ids = seen().map((call) => call.id)
    expect(ids).toEqual([minted, 'a', minted, minted, minted])
    expect(new Set(ids).size).toBe(5)
  })
})

describe('the end of the response', () => {
  test('a call without arguments has an empty object', () => {
    const { push, close, seen } = setUp()
    push({ id: 'a', name: 'now' })
    close()
    expect(seen()).toEqual([{ id: 'a', name: 'now', text: '{}', end: true }])
  })

  test('a truncated call is incomplete, and later unfinished calls are dropped', () => {
    const { push, close, seen, count } = setUp()
    push({ index: 0, id: 'a', name: 'look', text: '{"x":1}' })
    push({ index: 1, id: 'b', name: 'find', text: '{"y"' })
    push({ index: 2, id: 'c', name: 'find', text: '{"z"' })
    close(true)
    expect(seen()).toEqual([
      { id: 'a', name: 'look', text: '{"x":1}', end: true },
      { id: 'b', name: 'find', text: '{"y"', end: false },
    ])
    expect(count()).toBe(2)
  })

  test('a call truncated before its arguments has none', () => {
    const { push, close, seen } = setUp()
    push({ id: 'a', name: 'look' })
    close(true)
    expect(seen()).toEqual([{ id: 'a', name: 'look', text: '', end: false }])
  })

  test('arguments without a name are invalid, unless truncated', () => {
    const whole = setUp()
    whole.push({ id: 'a', text: '{}' })
    expect(() => whole.close()).toThrow('a tool call without a name')
    const cut = setUp()
    cut.push({ id: 'a', text: '{}' })
    cut.close(true)
    expect(cut.out).toEqual([])
  })

  test('a call with the same index after the end is a new call', () => {
    const { push, close, seen } = setUp()
    push({ name: 'now' })
    close()
    push({ name: 'find', text: '{}' })
    close()
    expect(seen().map(({ name }) => name)).toEqual(['now', 'find'])
  })
})

describe('custom calls', () => {
  test('the input is unwrapped and emitted at the end', () => {
    const { push, close, out } = setUp({ custom: ['shell'] })
    push({ id: 'a', name: 'shell', text: '{"input":"ls' })
    push({ text: ' \\"x\\""}' })
    expect(out).toHaveLength(1)
    close()
    expect(out).toEqual([
      { type: 'tool-call-start', block: 0, call: { callId: 'a', name: 'shell', form: 'custom' } },
      { type: 'tool-call-delta', block: 0, text: 'ls "x"' },
      { type: 'tool-call-end', block: 0, complete: true },
    ])
  })

  test('text that is not such an object is passed on unchanged', () => {
    for (const text of ['ls -l', '{"cmd":"ls"}', '{"input":7}', '[1]']) {
      const { push, close, seen } = setUp({ custom: ['shell'] })
      push({ id: 'a', name: 'shell', text })
      close()
      expect(seen()).toEqual([{ id: 'a', name: 'shell', text, end: true }])
    }
  })

  test('incomplete input is not emitted', () => {
    const { push, close, seen } = setUp({ custom: ['shell'] })
    push({ id: 'a', name: 'shell', text: '{"input":"rm -r' })
    close(true)
    expect(seen()).toEqual([{ id: 'a', name: 'shell', text: '', end: false }])
  })

  test('input is held, with a limit', () => {
    const { push } = setUp({ custom: ['shell'], heldCharsMax: 10 })
    expect(() => push({ id: 'a', name: 'shell', text: '{"input":"long"' })).toThrow(
      'too many tool-call arguments',
    )
  })
})
