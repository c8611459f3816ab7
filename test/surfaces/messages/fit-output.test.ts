import { expect, test } from 'bun:test'
import { fitOutput } from '#surfaces/messages/fit-output.ts'
import { makeRequest } from '#test/support/generation.ts'

const { sampling } = makeRequest()

function fitted(given: {
  asked: number | null
  contextWindow: number | null
  inputTokens: number
}): number | null {
  const request = makeRequest({ sampling: { ...sampling, maxOutputTokens: given.asked } })
  return fitOutput(request, given).sampling.maxOutputTokens
}

test('the output is limited to the remaining context window', () => {
  const contextWindow = 32_768
  expect(fitted({ asked: 32_000, contextWindow, inputTokens: 1_000 })).toBe(32_768 - 1_200 - 64)
  expect(fitted({ asked: 32_000, contextWindow, inputTokens: 20_000 })).toBe(32_768 - 24_000 - 64)
  expect(fitted({ asked: 4_000, contextWindow, inputTokens: 20_000 })).toBe(4_000)
})

test('a limit is unchanged if the window is unknown or nearly full', () => {
  expect(fitted({ asked: 32_000, contextWindow: null, inputTokens: 1_000 })).toBe(32_000)
  expect(fitted({ asked: null, contextWindow: 8_192, inputTokens: 1_000 })).toBeNull()
  expect(fitted({ asked: 32_000, contextWindow: 8_192, inputTokens: 6_500 })).toBe(32_000)
  expect(fitted({ asked: 32_000, contextWindow: 8_192, inputTokens: 9_000 })).toBe(32_000)
})
