import { expect, test } from 'bun:test'
import { createReplayTail } from '#speech/recognition/replay-tail.ts'
import { createDice } from '#test/support/dice.ts'

test('what is read is what was written there, however it came and was dropped', () => {
  for (let seed = 1; seed <= 50; seed += 1) {
    const dice = createDice(seed)
    const samplesMax = 20_000 + dice.upTo(40_000)
    const tail = createReplayTail(samplesMax)
    let written = 0
    for (let round = 0; round < 200; round += 1) {
      const piece = Int16Array.from({ length: dice.upTo(6_000) }, (_, at) => sampleAt(written + at))
      tail.append(piece)
      written += piece.length
      piece.fill(0)
      if (dice.upTo(5) === 0) tail.dropBefore(tail.start() + dice.upTo(30_000))
      expect(tail.end()).toBe(written)
      expect(tail.end() - tail.start()).toBeLessThanOrEqual(samplesMax)
      const from = tail.start() + dice.upTo(tail.end() - tail.start() + 1)
      const count = dice.upTo(tail.end() - from + 1)
      const read = tail.read(from, count)
      expect(read).toEqual(Int16Array.from({ length: count }, (_, at) => sampleAt(from + at)))
    }
  }
})

test('memory follows what is kept, not what was written', () => {
  const tail = createReplayTail(480_000)
  for (let second = 0; second < 100; second += 1) tail.append(new Int16Array(16_000))
  expect(tail.bytes()).toBeLessThanOrEqual(2 * 480_000 + 2 * 16_384)
  tail.dropBefore(tail.end() - 100)
  expect(tail.bytes()).toBeLessThanOrEqual(2 * 16_384)
  tail.dropBefore(tail.end())
  tail.append(new Int16Array(10))
  expect(tail.bytes()).toBeLessThanOrEqual(16_384)
})

test('what is gone, or has not come, cannot be read', () => {
  const tail = createReplayTail(1_000)
  tail.append(new Int16Array(1_500))
  expect(tail.start()).toBe(500)
  expect(() => tail.read(499, 10)).toThrow()
  expect(() => tail.read(1_400, 101)).toThrow()
})

function sampleAt(position: number): number {
  return (position * 31) % 30_011
}
