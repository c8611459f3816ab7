import { expect, test } from 'bun:test'
import { throttle } from '#lib/throttle.ts'

test('the first time is told at once, the others wait for the interval to be over', () => {
  const told: number[] = []
  const happen = throttle(60_000, (times) => told.push(times))
  happen()
  happen()
  happen()
  expect(told).toEqual([1])
})

test('what happened in between is counted', async () => {
  const told: number[] = []
  const happen = throttle(20, (times) => told.push(times))
  let calls = 0
  while (told.length < 3) {
    happen()
    calls++
    await Bun.sleep(1)
  }
  expect(told.reduce((sum, times) => sum + times)).toBe(calls)
})
