import { expect, test } from 'bun:test'
import {
  fairnessOf,
  fairnessOfWhole,
  fairShares,
  jainIndex,
  quantile,
} from '../../bench/support/fairness.ts'

test('whole calls that are divided as equally as possible are fair', () => {
  expect(fairnessOfWhole([2, 1, 2, 1, 2])).toBe(1)
  expect(fairnessOfWhole([2, 2, 2])).toBe(1)
  expect(fairnessOfWhole([4, 1, 1, 1, 1])).toBeLessThan(0.8)
  expect(fairnessOfWhole([0, 0, 0])).toBe(1)
})

test('the index of Jain is 1 for equal values and 1/n if one has everything', () => {
  expect([jainIndex([3, 3, 3]), jainIndex([5, 0, 0, 0])]).toEqual([1, 0.25])
})

test('who asks for less than an equal share gets it, and the others divide the rest', () => {
  expect(fairShares([1, 50, 4], 15)).toEqual([1, 10, 4])
  expect(fairShares([10, 10], 6)).toEqual([3, 3])
})

test('a caller that gets only its fair share of an overload is treated fairly', () => {
  expect(fairnessOf([1, 100, 2, 0], [1, 7, 2, 0])).toBe(1)
  expect(fairnessOf([5, 100], [1, 9])).toBeLessThan(0.75)
})

test('a quantile is one of the values', () => {
  expect([quantile([4, 1, 3, 2], 0.5), quantile([4, 1, 3, 2], 0.99)]).toEqual([2, 4])
})
