import { describe, expect, test } from 'bun:test'
import { usageOfTokens } from '#inference/events.ts'
import type { ToolChoice } from '#inference/request.ts'
import {
  Budget,
  normaliseChoice,
  runConcurrently,
  withoutRequirement,
} from '#inference/tool-loop/budget.ts'
import { makeRequest } from '#test/support/generation.ts'

const limited = (maxOutputTokens: number | null) => {
  const request = makeRequest()
  return { ...request, sampling: { ...request.sampling, maxOutputTokens } }
}

describe('the budget of a response', () => {
  test('has the output tokens that the turns have left', () => {
    const budget = new Budget(limited(10), 100)
    expect([budget.usage, budget.outputTokensLeft]).toEqual([null, 10])
    budget.addUsage(null)
    expect([budget.usage, budget.outputTokensLeft]).toEqual([null, 10])
    budget.addUsage(usageOfTokens(5, 4))
    budget.addUsage(usageOfTokens(5, 4))
    expect([budget.usage?.inputTokens, budget.outputTokensLeft]).toEqual([10, 2])
    const unlimited = new Budget(limited(null), 100)
    unlimited.addUsage(usageOfTokens(5, 4))
    expect(unlimited.outputTokensLeft).toBeNull()
  })

  test('has texts and items up to the limit', () => {
    const budget = new Budget(limited(null), 20)
    budget.addText([{ type: 'text-delta', block: 0, text: 'x'.repeat(10) }])
    const end = { type: 'hosted-tool-end', block: 0, item: { type: 'a' } } as const
    expect(JSON.stringify(end.item)).toHaveLength(12)
    const rest = { type: 'tool-call-delta', block: 0, text: 'x'.repeat(10) } as const
    budget.addText([rest, { type: 'text-end', block: 0, complete: true }])
    expect(() => budget.addText([{ ...rest, text: 'x' }])).toThrow(
      'longer than the limit of 20 characters',
    )
    const other = new Budget(limited(null), 12)
    other.addText([end])
    expect(() => other.addText([{ ...rest, text: 'x' }])).toThrow(
      expect.objectContaining({ kind: 'upstream_invalid_answer' }),
    )
  })
})

const auto: ToolChoice = { type: 'auto' }
const tools = [{ name: 'look' }]

test.each<[ToolChoice, ToolChoice]>([
  [{ type: 'required' }, auto],
  [{ type: 'tool', form: 'function', name: 'look' }, auto],
  [{ type: 'native', value: {} }, auto],
  [
    { type: 'allowed', mode: 'required', tools },
    { type: 'allowed', mode: 'auto', tools },
  ],
  [auto, auto],
  [{ type: 'none' }, { type: 'none' }],
])('after the first turn %j is %j', (choice, next) => {
  expect(withoutRequirement(choice)).toEqual(next)
})

test.each<[ToolChoice, boolean]>([
  [{ type: 'allowed', mode: 'auto', tools: [] }, true],
  [{ type: 'allowed', mode: 'auto', tools }, false],
  [{ type: 'allowed', mode: 'auto', tools: [], native: [] }, false],
  [auto, false],
])('the choice %j allows none: %p', (choice, isNone) => {
  expect(normaliseChoice(choice)).toEqual(isNone ? { type: 'none' } : choice)
})

test('work starts in order, so many at a time, and a failure stops nothing', async () => {
  const started: number[] = []
  const ends = [1, 2, 3, 4].map(() => Promise.withResolvers<string>())
  const results = runConcurrently([0, 1, 2, 3], 2, (item) => {
    started.push(item)
    return ends[item]?.promise ?? Promise.reject(new Error('no work'))
  })
  expect(started).toEqual([0, 1])
  ends[1]?.reject(new Error('failed'))
  await expect(results[1]).rejects.toThrow('failed')
  expect(started).toEqual([0, 1, 2])
  for (const end of ends) end.resolve('done')
  expect(await Promise.all([results[0], results[2], results[3]])).toEqual(['done', 'done', 'done'])
  expect(started).toEqual([0, 1, 2, 3])
})
