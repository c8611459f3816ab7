import { expect, test } from 'bun:test'
import { throttle } from '#lib/throttle.ts'

test('the first event is reported immediately, later ones after the interval', () => {
  const told: number[] = []
  const happen = throttle(60_000, (times) => told.push(times))
  happen()
  happen()
  happen()
  expect(told).toEqual([1])
})

test('events in between are counted', async () => {
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
