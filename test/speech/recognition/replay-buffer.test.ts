import { expect, test } from 'bun:test'
import { ReplayBuffer } from '#speech/recognition/replay-buffer.ts'
import { createDice } from '#test/support/dice.ts'

test('reads return the written samples for random writes and drops', () => {
  for (let seed = 1; seed <= 50; seed += 1) {
    const dice = createDice(seed)
    const samplesMax = 20_000 + dice.upTo(40_000)
    const buffer = new ReplayBuffer(samplesMax)
    let written = 0
    for (let round = 0; round < 200; round += 1) {
      const piece = Int16Array.from({ length: dice.upTo(6_000) }, (_, at) => sampleAt(written + at))
      buffer.append(piece)
      written += piece.length
      piece.fill(0)
      if (dice.upTo(5) === 0) buffer.dropBefore(buffer.start + dice.upTo(30_000))
      expect(buffer.end).toBe(written)
      expect(buffer.end - buffer.start).toBeLessThanOrEqual(samplesMax)
      const from = buffer.start + dice.upTo(buffer.end - buffer.start + 1)
      const count = dice.upTo(buffer.end - from + 1)
      const read = buffer.read(from, count)
      expect(read).toEqual(Int16Array.from({ length: count }, (_, at) => sampleAt(from + at)))
    }
  }
})

test('memory depends on the retained samples, not on all written ones', () => {
  const buffer = new ReplayBuffer(480_000)
  for (let second = 0; second < 100; second += 1) buffer.append(new Int16Array(16_000))
  expect(buffer.bytes()).toBeLessThanOrEqual(2 * 480_000 + 2 * 16_384)
  buffer.dropBefore(buffer.end - 100)
  expect(buffer.bytes()).toBeLessThanOrEqual(2 * 16_384)
  buffer.dropBefore(buffer.end)
  buffer.append(new Int16Array(10))
  expect(buffer.bytes()).toBeLessThanOrEqual(16_384)
})

test('reading dropped or future samples throws', () => {
  const buffer = new ReplayBuffer(1_000)
  buffer.append(new Int16Array(1_500))
  expect(buffer.start).toBe(500)
  expect(() => buffer.read(499, 10)).toThrow()
  expect(() => buffer.read(1_400, 101)).toThrow()
})

function sampleAt(position: number): number {
  return (position * 31) % 30_011
}
