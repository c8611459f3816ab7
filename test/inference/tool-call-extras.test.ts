import { expect, test } from 'bun:test'
import type { GenerationEvent } from '#inference/events.ts'
import { callIdsOf, type ToolCallPiece, ToolCalls } from '#inference/tool-calls.ts'
import { userMessage } from '#test/support/generation.ts'

/** What a call has beside its name and arguments. */

function setUp() {
  const extras: (readonly [callId: string, extra: unknown, events: number])[] = []
  const out: GenerationEvent[] = []
  let block = -1
  const calls = new ToolCalls({
    head: (name) => ({ name, form: 'function' }),
    openBlock: () => ++block,
    addExtra: (callId, extra) => void extras.push([callId, extra, out.length]),
    takenCallIds: new Set(),
    heldCharsMax: 1_000,
  })
  const push = (piece: Partial<ToolCallPiece>) =>
    calls.push({ index: 0, indexGiven: true, id: '', name: '', text: '', ...piece }, out)
  return { calls, push, out, extras }
}

test('the ids of the calls of a history are taken', () => {
  const call = { type: 'tool-call', name: 'look', form: 'function', arguments: '' } as const
  const items = [{ ...call, callId: 'a' }, userMessage('Hi'), { ...call, callId: 'b' }]
  expect([...callIdsOf({ items })]).toEqual(['a', 'b'])
  expect([...callIdsOf({ items: [userMessage('Hi')] })]).toEqual([])
})

test('additions precede the block that they come before, and follow it otherwise', () => {
  const { push, extras } = setUp()
  push({ id: 'a', extra: { at: 1 } })
  expect(extras).toEqual([])
  push({ name: 'look' })
  expect(extras).toEqual([['a', { at: 1 }, 0]])
  push({ text: '{}', extra: { at: 2 } })
  expect(extras.slice(1)).toEqual([['a', { at: 2 }, 1]])
})

test('a call without additions has none', () => {
  const { push, extras } = setUp()
  push({ id: 'a', name: 'look', text: '{}' })
  expect(extras).toEqual([])
})

test('the id may follow the name, and a later one changes nothing', () => {
  const { push, calls, out } = setUp()
  push({ text: '{"a":' })
  push({ id: 'a' })
  push({ name: 'look', text: '1}' })
  calls.close(out, false)
  expect(out).toMatchObject([
    { type: 'tool-call-start', call: { callId: 'a', name: 'look' } },
    { text: '{"a":1}' },
    { type: 'tool-call-end', complete: true },
  ])
})

test('a call is cut between the beginning and the end of its arguments', () => {
  const { push, calls } = setUp()
  expect(calls.isCut).toBe(false)
  push({ id: 'a', name: 'look' })
  expect(calls.isCut).toBe(false)
  push({ text: '{"a":' })
  expect(calls.isCut).toBe(true)
  push({ text: '1}' })
  expect(calls.isCut).toBe(false)
})
