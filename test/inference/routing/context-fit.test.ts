import { expect, test } from 'bun:test'
import { targetsWithLargerWindow, withFittingTargets } from '#inference/routing/context-fit.ts'
import type { Target } from '#inference/upstream.ts'
import { makeRequest, makeRequestContext, userMessage } from '#test/support/generation.ts'
import { target } from '#test/support/generations.ts'

const of = (given: Partial<Target>): Target => ({ ...target('http://127.0.0.1/v1'), ...given })
const [small, large, unknown] = [
  of({ contextWindow: 1_000 }),
  of({ contextWindow: 2_000 }),
  of({ contextWindow: null }),
]
const other = of({ model: 'other', isFallback: true })
const namesake = of({ isFallback: true })

test.each([
  ['a small one', small, [large, other]],
  ['a large one', large, [other]],
  ['one of an unknown window', unknown, [small, large, other]],
])(
  'after %s refused an input as too long, larger windows and other models may take it',
  (_, failed, rest) => {
    const all = [small, large, unknown, other, namesake]
    expect(targetsWithLargerWindow(all, failed)).toEqual(rest)
  },
)

const fitting = (targets: readonly Target[], chars: number | null) => {
  const request =
    chars === null ? {} : { request: makeRequest({ items: [userMessage('x '.repeat(chars / 2))] }) }
  return withFittingTargets({ context: makeRequestContext(), targets, ...request }).targets
}

test('an input goes to the targets whose window holds it', () => {
  const both = [small, large]
  expect(fitting(both, 100)).toEqual(both)
  expect(fitting(both, 6_000)).toEqual([large])
  expect(fitting([small, unknown], 6_000)).toEqual([unknown])
})

test('an input that no window holds goes to the largest one', () => {
  expect(fitting([small, large], 100_000)).toEqual([large])
})

test('all targets stay where windows do not differ, or nothing is generated', () => {
  expect(fitting([small, { ...small }], 100_000)).toHaveLength(2)
  expect(fitting([], 100_000)).toEqual([])
  expect(fitting([small, large], null)).toHaveLength(2)
})
