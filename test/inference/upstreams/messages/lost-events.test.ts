import { describe, expect, test } from 'bun:test'
import { isRecord, parseJson } from '#lib/json.ts'
import { encode } from '#test/inference/upstreams/responses/decoding.ts'
import { createDice } from '#test/support/dice.ts'
import { recordedPayloads, recordedStreamNames } from '#test/support/recordings.ts'
import {
  decode,
  decodeReads,
  messageDelta,
  messageStart,
  messageStop,
  textBlock,
} from './decoding.ts'

const manglingsEach = 40

describe('a recorded stream with events lost, repeated and swapped', () => {
  test.each(recordedStreamNames('messages'))('%s never breaks an order', (name) => {
    const payloads = recordedPayloads('messages', name)
    const kinds = new Set<string>()
    for (let seed = 0; seed < manglingsEach; seed++) {
      // `decode` checks the events against the grammar and throws on violations.
      const { error, frames } = decode(mangle(payloads, seed))
      kinds.add(error?.kind ?? 'none')
      expectOrder(frames.map(({ payload }) => payload))
    }
    expect([...kinds]).not.toContain('internal_error')
  })
})

test('a stream that ends before its start is truncated, and pings say nothing else', () => {
  for (const begun of ['', 'event: ping\ndata: {"type":"ping"}\n\n', 'event: ping\ndata: {}\n\n']) {
    expect(decodeReads([encode(begun)]).error?.kind).toBe('upstream_truncated')
  }
})

test('a message that stops without a stop reason is truncated, and none after it counts', () => {
  const begun = [messageStart, ...textBlock('Hi')]
  expect(decode([...begun, messageStop]).error?.kind).toBe('upstream_truncated')
  expect(decode([messageStop]).error?.kind).toBe('upstream_truncated')
  const { events, error } = decode([...begun, messageDelta(), messageStop, ...textBlock('Ho', 1)])
  expect(error).toBeNull()
  expect(events.filter(({ type }) => type === 'text-delta')).toHaveLength(1)
})

function mangle(payloads: readonly string[], seed: number): unknown[] {
  const dice = createDice(seed)
  const mangled = payloads.flatMap((payload) => {
    const roll = dice.upTo(20)
    if (roll < 2) return []
    return roll < 4 ? [payload, payload] : [payload]
  })
  for (let swaps = dice.upTo(20); swaps > 0; swaps--) {
    const [one, other] = [dice.upTo(mangled.length), dice.upTo(mangled.length)]
    const [a, b] = [mangled[one], mangled[other]]
    if (a !== undefined && b !== undefined) [mangled[one], mangled[other]] = [b, a]
  }
  return mangled.map(parseJson).filter(isRecord)
}

/** One message with sequential blocks, indices without gaps, and its end after them. */
function expectOrder(frames: readonly { [field: string]: unknown }[]): void {
  let open: unknown = null
  let blocks = 0
  let isEnding = false
  for (const [at, { type, index }] of frames.entries()) {
    expect(type === 'message_start', 'the message begins first, and once').toBe(at === 0)
    if (type === 'content_block_start') {
      expect([open, index, isEnding]).toEqual([null, blocks, false])
      open = index
      blocks++
    } else if (type === 'content_block_delta') {
      expect(index, 'a delta is of the open block').toBe(open)
    } else if (type === 'content_block_stop') {
      expect(index, 'the open block ends').toBe(open)
      open = null
    } else if (at > 0) {
      expect(open, 'the end comes behind the last block').toBeNull()
      isEnding = true
    }
  }
}
