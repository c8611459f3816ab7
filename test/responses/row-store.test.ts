import { expect, test } from 'bun:test'
import { charsPerStatement, chunksOf, keyOf } from '#responses/row-store.ts'

/** How rows and ids become the values of a statement. */

const rowOf = (chars: number) => JSON.stringify('x'.repeat(chars - 2))
const lengthsOf = (chars: readonly number[]) =>
  chunksOf(chars.map(rowOf)).map((json) => JSON.parse(json).map((text: string) => text.length + 2))

test('rows share a statement up to its size, and a row that is larger has one of its own', () => {
  const half = charsPerStatement / 2
  expect(chunksOf([])).toEqual([])
  expect(lengthsOf([half, half])).toEqual([[half, half]])
  expect(lengthsOf([half, half + 1, half - 1, 2])).toEqual([[half], [half + 1, half - 1], [2]])
  const large = charsPerStatement + 1
  expect(lengthsOf([2, large, 2])).toEqual([[2], [large], [2]])
  expect(lengthsOf([large])).toEqual([[large]])
})

test('a statement takes a bounded number of rows', () => {
  const counts = lengthsOf(Array.from({ length: 4_001 }, () => 2)).map(({ length }) => length)
  expect(counts).toEqual([2_000, 2_000, 1])
})

test('ids that no column accepts are replaced by their hash', () => {
  const longest = 'x'.repeat(128)
  expect([keyOf('one'), keyOf(longest)]).toEqual(['one', longest])
  const unusable = [`${longest}x`, 'a\0', 'a\ud800', 'b\ud800'].map(keyOf)
  expect(new Set(unusable).size).toBe(4)
  for (const key of unusable) expect(key).toMatch(/^sha256:[0-9a-f]{64}$/)
})
