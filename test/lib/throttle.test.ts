import { expect, test } from 'bun:test'
import { throttle } from '#lib/throttle.ts'

test('the first event is reported immediately, later ones after the interval', () => {
  const reported: number[] = []
  const happen = throttle(60_000, (times) => reported.push(times))
  happen()
  happen()
  happen()
  expect(reported).toEqual([1])
})

test('events in between are counted', async () => {
  const reported: number[] = []
  const happen = throttle(20, (times) => reported.push(times))
  let calls = 0
  while (reported.length < 3) {
    happen()
    calls++
    await Bun.sleep(1)
  }
  expect(reported.reduce((sum, times) => sum + times)).toBe(calls)
})
