import { describe, expect, test } from 'bun:test'
import { entityTag, isKnown, readIfMatch } from '#lib/entity-tag.ts'

describe('If-Match', () => {
  test.each([
    [null, true],
    ['*', true],
    [' * ', true],
    ['"a"', true],
    ['"b", "a"', true],
    ['"b","a","c"', true],
    ['"b" ,\t"a"', true],
    ['', false],
    ['a', false],
    ['"b"', false],
    ['W/"a"', false],
    ['"A"', false],
    ['""a""', false],
    ['"b", *', false],
  ])('%p matches the tag "a": %p', (header, isMeant) => {
    expect(readIfMatch(header)('a')).toBe(isMeant)
  })

  test('can compare part of each tag', () => {
    const isExpected = readIfMatch('"a-json", "b"', (name) => name.replace(/-\w+$/, ''))
    expect(['a', 'b', 'a-json'].map(isExpected)).toEqual([true, true, false])
  })

  test('round-trips a tag', () => {
    expect(readIfMatch(entityTag('7-f00'))('7-f00')).toBe(true)
  })
})

test.each([
  [null, false],
  ['*', true],
  ['"a"', true],
  ['W/"a"', true],
  ['"b", W/"a"', true],
  ['"b"', false],
  ['', false],
])('If-None-Match %p matches the tag "a": %p', (header, hasIt) => {
  expect(isKnown(header, 'a')).toBe(hasIt)
})
