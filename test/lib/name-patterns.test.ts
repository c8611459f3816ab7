import { expect, test } from 'bun:test'
import { matchNames } from '#lib/name-patterns.ts'

test.each([
  [['gpt-4'], 'gpt-4', true],
  [['gpt-4'], 'gpt-4o', false],
  [['gpt-4'], 'GPT-4', false],
  [['a', 'gpt-*'], 'gpt-4o', true],
  [['gpt-*'], 'gpt-', true],
  [['gpt-*'], 'gpt', false],
  [['gpt-*'], 'x-gpt-4', false],
  [['*-4'], 'gpt-4', true],
  [['*-4'], 'gpt-4o', false],
  [['*'], '', true],
  [['*'], 'anything/at:all', true],
  [['a*b*c'], 'abc', true],
  [['a*b*c'], 'a-b-b-c', true],
  [['a*b*c'], 'acb', false],
  [['ab*ba'], 'aba', false],
  [['a*b*b'], 'ab', false],
  [['a**c'], 'ac', true],
  [['a.c'], 'abc', false],
  [['a?c', '[ab]'], 'a', false],
  [[], 'a', false],
])('%j matches %j: %j', (patterns, name, isMatched) => {
  expect(matchNames(patterns)(name)).toBe(isMatched)
})

test('a pattern of many wildcards takes linear time', () => {
  const matches = matchNames([`${'*a'.repeat(50)}*b`])
  expect(matches('a'.repeat(200_000))).toBe(false)
})
