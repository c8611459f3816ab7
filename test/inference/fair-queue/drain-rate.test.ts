import { expect, test } from 'bun:test'
import { DrainRate } from '#inference/fair-queue/drain-rate.ts'

const unknownMs = 1_000

test('before the first grant, each call takes the usual time, or as long as the first one waits', () => {
  const drain = new DrainRate()
  drain.begin(500)
  expect(drain.drainMs(3, 500, unknownMs)).toBe(3_000)
  expect(drain.drainMs(3, 2_500, unknownMs)).toBe(6_000)
})

test('after grants, each call takes their mean interval', () => {
  const drain = new DrainRate()
  drain.begin(1_000)
  drain.granted(1_100)
  expect(drain.drainMs(2, 1_100, unknownMs)).toBe(200)
  drain.granted(1_400)
  expect(drain.drainMs(2, 1_400, unknownMs)).toBe(400)
  expect(drain.drainMs(0, 1_400, unknownMs)).toBe(0)
})

test('time without waiting calls does not count', () => {
  const drain = new DrainRate()
  drain.begin(0)
  drain.granted(100)
  drain.begin(10_000)
  drain.granted(10_100)
  expect(drain.drainMs(1, 10_100, unknownMs)).toBe(100)
})

test('a queue that has stopped to drain takes longer', () => {
  const drain = new DrainRate()
  drain.begin(0)
  drain.granted(100)
  expect(drain.drainMs(1, 200, unknownMs)).toBe(100)
  expect(drain.drainMs(1, 700, unknownMs)).toBe(600)
})

test('an interval changes the mean by at least a sixteenth', () => {
  const drain = new DrainRate()
  drain.begin(0)
  for (let grant = 1; grant <= 100; grant++) drain.granted(grant * 160)
  drain.granted(16_320)
  expect(drain.drainMs(1, 16_320, unknownMs)).toBeCloseTo(170, 9)
})
