import { expect, test } from 'bun:test'
import { usageOfTokens } from '#inference/events.ts'
import { createCallCosts } from '#inference/fair-queue/call-cost.ts'
import { makeRequest, userMessage } from '#test/support/generation.ts'

const text = 'x'.repeat(400)
const request = makeRequest({ items: [userMessage(text)] })

test('a call costs a quarter of its characters', () => {
  const { estimateTokens } = createCallCosts()
  expect(estimateTokens('m', null)).toBe(1)
  expect(estimateTokens('m', { text, voice: 'alloy', format: 'mp3' })).toBe(100)
  expect(estimateTokens('m', { texts: [text, text] })).toBe(200)
  expect(estimateTokens('m', { documents: [text], query: 'abcd', topN: null })).toBe(101)
})

test('a generation also costs its expected output, its tools and its images', () => {
  const { estimateTokens } = createCallCosts()
  expect(estimateTokens('m', request)).toBe(100 + 300)
  const { sampling } = request
  const short = { ...request, sampling: { ...sampling, maxOutputTokens: 10 } }
  expect(estimateTokens('m', short)).toBe(100 + 10)
  const tool = {
    type: 'function',
    name: 'look',
    description: null,
    parameters: null,
    strict: null,
  } as const
  expect(estimateTokens('m', { ...request, tools: [tool, tool] })).toBe(100 + 300 + 300)
  const image = { type: 'image', url: 'https://a.example/x.png', detail: 'low' } as const
  const items = [
    { type: 'message', role: 'user', parts: [{ type: 'text', text }, image] },
    { type: 'tool-call', callId: 'c', name: 'look', form: 'function', arguments: 'abcd' },
  ] as const
  expect(estimateTokens('m', { ...request, items })).toBe(101 + 85 + 300)
})

test('a settled call costs what was not cached, and teaches the next estimate of its model', () => {
  const { estimateTokens, settledTokens } = createCallCosts()
  const usage = { ...usageOfTokens(1_000, 20), cachedTokens: 1_000 }
  expect(settledTokens('m', usage)).toBe(20)
  // One part in sixteen.
  expect(estimateTokens('m', request)).toBeCloseTo((100 * 15) / 16 + 300 - 280 / 16, 9)
  expect(estimateTokens('other', request)).toBe(400)
})

test('a call without input, or with more cached than it had, costs its output', () => {
  const { estimateTokens, settledTokens } = createCallCosts()
  expect(settledTokens('m', usageOfTokens(0, 300))).toBe(300)
  expect(estimateTokens('m', request)).toBe(400)
  expect(settledTokens('m', { ...usageOfTokens(10, 300), cachedTokens: 20 })).toBe(300)
})
