import { expect, test } from 'bun:test'
import {
  blockStart,
  blockStop,
  decode,
  inputDelta,
  messageDelta,
  messageStart,
  messageStop,
  textBlock,
  toolUse,
} from './decoding.ts'

/** Calls that arrive at the same time are sent one after the other. */

const chars = 1_000_000
const start = (index: number) => blockStart(toolUse(`t_${index}`, 'look'), index)
/** So many deltas of a call. */
const deltas = (count: number, index: number) =>
  Array<object>(count).fill(inputDelta('x'.repeat(chars), index))
const decodeAll = (payloads: readonly unknown[]) =>
  decode([messageStart, ...payloads], { toolArgumentCharsMax: 100 * chars })

test('a call that waits for another one is buffered up to the limit', () => {
  const { error } = decodeAll([start(0), start(1), ...deltas(9, 1)])
  expect(error).toMatchObject({ kind: 'upstream_invalid_answer' })
  expect(error?.message).toContain('more concurrent content blocks than can be buffered')
})

test('what was sent no longer counts', () => {
  const { events, error } = decodeAll([
    start(0),
    start(1),
    ...deltas(5, 1),
    blockStop(0),
    start(2),
    ...deltas(5, 2),
    blockStop(1),
    blockStop(2),
    messageDelta('tool_use'),
    messageStop,
  ])
  expect(error).toBeNull()
  const ends = events.flatMap((event) => (event.type === 'tool-call-end' ? [event.complete] : []))
  expect(ends).toEqual([true, true, true])
})

test('the blocks of a message are limited', () => {
  const failureOf = (count: number) => {
    const blocks = Array.from({ length: count }, (_, index) => textBlock('x', index)).flat()
    return decodeAll([...blocks, messageDelta(), messageStop]).error?.message ?? null
  }
  expect(failureOf(4_096)).toBeNull()
  expect(failureOf(4_097)).toContain('too many content blocks')
})
