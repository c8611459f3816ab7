import { expect, test } from 'bun:test'
import { createRateMeter } from '#installer/progress.ts'

test('the rate covers the last ten seconds', () => {
  let nowMs = 0
  const rate = createRateMeter(() => nowMs)
  expect(rate.perSecond()).toBeNull()
  for (; nowMs < 20_000; nowMs += 100) rate.add(nowMs < 10_000 ? 1_000 : 5_000)
  expect(rate.perSecond()).toBeGreaterThanOrEqual(49_000)
  expect(rate.perSecond()).toBeLessThanOrEqual(51_000)
  nowMs += 10_001
  expect(rate.perSecond()).toBeNull()
})

test('the first bytes count over the time since the start', () => {
  let nowMs = 0
  const rate = createRateMeter(() => nowMs)
  rate.add(1_000)
  nowMs = 2_000
  rate.add(1_000)
  expect(rate.perSecond()).toBe(1_000)
})
