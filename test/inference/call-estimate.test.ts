import { expect, test } from 'bun:test'
import { estimateInput, estimateUsage, promptChars } from '#inference/call-estimate.ts'
import { makeRequest, userMessage } from '#test/support/generation.ts'

test('the input of each kind of call is estimated by its characters', () => {
  const tool = { type: 'custom', name: 'sh', description: null, grammar: null } as const
  const request = makeRequest({ instructions: 'abc', items: [userMessage('abcdef')] })
  expect(promptChars(request)).toBe(9)
  expect(promptChars(makeRequest({ items: [] }))).toBe(0)
  expect(estimateInput(request)).toBe(3)
  expect(estimateInput({ ...request, tools: [tool, tool] })).toBe(203)
  expect(estimateInput({ text: 'abcde', voice: 'alloy', format: 'mp3' })).toBe(5)
  expect(estimateInput({ texts: ['abcd', 'e'] })).toBe(2)
  expect(estimateInput({ documents: ['abcd', 'efgh'], query: 'ab', topN: null })).toBe(3)
})

test('a call without a usage used what it sent, if it had output', () => {
  expect(estimateUsage({ firstEventMs: 5, outputChars: 9 }, 70)).toMatchObject({
    inputTokens: 70,
    outputTokens: 3,
    totalTokens: 73,
    estimated: true,
  })
  expect(estimateUsage({ firstEventMs: null, outputChars: 0 }, 70)).toMatchObject({
    inputTokens: 0,
    outputTokens: 0,
    estimated: true,
  })
})
