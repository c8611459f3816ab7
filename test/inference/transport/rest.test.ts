import { expect, test } from 'bun:test'
import { createRest } from '#inference/transport/rest.ts'

/** A rest on a clock by hand, and turns that are ended by hand. */
function startRest() {
  let nowMs = 0
  let sleptMs = 0
  let endTurn = () => {}
  const rest = createRest({
    nowMs: () => nowMs,
    sleep: (ms) => {
      sleptMs += ms
    },
    afterTurn: (callback) => {
      endTurn = callback
    },
  })
  return {
    /** Chunks that arrive at this rate, each in a turn of its own; returns the time slept meanwhile. */
    chunks(count: number, perMs: number): number {
      const before = sleptMs
      for (let at = 0; at < count; at++) {
        nowMs += 1 / perMs
        this.turn(1)
      }
      return sleptMs - before
    },
    /** One turn; returns the time slept after it. */
    turn(chunks: number): number {
      const before = sleptMs
      for (let at = 0; at < chunks; at++) rest.delivered()
      endTurn()
      endTurn = () => {}
      return sleptMs - before
    },
  }
}

test('the chunks of hundreds of streams are followed by rests of a millisecond', () => {
  const rest = startRest()
  rest.chunks(200, 20)
  expect(rest.turn(1)).toBe(1)
  expect(rest.turn(3)).toBe(1)
})

test('the chunks of few streams are never followed by a rest', () => {
  expect(startRest().chunks(2_000, 2)).toBe(0)
})

test('a turn that delivers many chunks is followed by the next one', () => {
  const rest = startRest()
  rest.chunks(200, 20)
  expect(rest.turn(40)).toBe(0)
})

test('rests end when the streams do', () => {
  const rest = startRest()
  rest.chunks(200, 20)
  rest.chunks(200, 1)
  expect(rest.chunks(200, 1)).toBe(0)
})
