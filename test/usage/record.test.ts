import { expect, test } from 'bun:test'
import { recordOf, silentTarget } from '#test/support/token-counting.ts'
import { toUsageRecord } from '#usage/record.ts'
import { ann } from './use.ts'

const at = { nowMs: 5_000, wallMs: Date.UTC(2026, 10, 23) }
const call = { ...recordOf(silentTarget, 10), userId: ann, endedAtMs: 4_000 }
const convert = (given: Partial<typeof call>) =>
  toUsageRecord({ ...call, ...given }, at, () => null)

test('a record has the time of the end of its call, also in its id', () => {
  const { id, endedAt } = convert({})
  expect(endedAt).toEqual(new Date('2026-11-22T23:59:59.000Z'))
  expect(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)).toBe(endedAt.getTime())
})

test('names are storable and short, whatever a request contains', () => {
  expect(convert({ model: 'a\0b\ud800' }).model).toBe('ab\ufffd')
  expect(convert({ model: 'x'.repeat(1_000) }).model).toHaveLength(256)
})

test.each([
  [Number.NaN, 0],
  [Number.POSITIVE_INFINITY, 0],
  [-3, 0],
  [1.6, 2],
  [1e300, 1e9],
])('%p tokens of an upstream are %p', (reported, expected) => {
  const usage = {
    inputTokens: reported,
    cachedTokens: reported,
    cacheWriteTokens: reported,
    outputTokens: reported,
    reasoningTokens: reported,
    totalTokens: reported,
  }
  expect(convert({ usage })).toMatchObject({
    inputTokens: expected,
    cachedTokens: expected,
    cacheWriteTokens: expected,
    outputTokens: expected,
    reasoningTokens: expected,
  })
})

test('work of the gateway itself has no user', () => {
  expect(convert({ userId: '' }).userId).toBeNull()
})

test('a cost beyond what a column holds is limited', () => {
  expect(toUsageRecord(call, at, () => 1e30).costNanos).toBe(1e13)
})
