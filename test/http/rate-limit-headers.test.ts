import { expect, test } from 'bun:test'
import { setRateLimitHeaders } from '#http/rate-limit-headers.ts'

const at = new Date('2026-11-23T23:59:30.250Z')
const limit = (resetS: number, remaining = 5) => ({ limit: 10, remaining, resetS })

test('durations have the form of OpenAI, rounded up', () => {
  const resets: [number, string][] = [
    [0, '0ms'],
    [0.0171, '18ms'],
    [0.9999, '1s'],
    [1, '1s'],
    [59.2, '1m0s'],
    [360, '6m0s'],
    [3_600, '1h0m0s'],
    [86_399, '23h59m59s'],
  ]
  for (const [resetS, text] of resets) {
    const headers: Record<string, string | number> = {}
    const limits = { at, requests: limit(resetS), inputTokens: null, outputTokens: null }
    setRateLimitHeaders(headers, limits, 'responses')
    expect(headers).toEqual({
      'x-ratelimit-limit-requests': 10,
      'x-ratelimit-remaining-requests': 5,
      'x-ratelimit-reset-requests': text,
    })
  }
})

test('messages have instants, and the tighter one of input and output as tokens', () => {
  const headers: Record<string, string | number> = {}
  const limits = { at, requests: null, inputTokens: limit(30, 7), outputTokens: limit(31, 2) }
  setRateLimitHeaders(headers, limits, 'messages')
  expect(headers).toMatchObject({
    'anthropic-ratelimit-tokens-remaining': 2,
    'anthropic-ratelimit-input-tokens-remaining': 7,
    'anthropic-ratelimit-input-tokens-reset': '2026-11-24T00:00:01Z',
    'anthropic-ratelimit-output-tokens-reset': '2026-11-24T00:00:02Z',
  })
})

test('without limits there are no headers', () => {
  const headers = {}
  setRateLimitHeaders(headers, null, 'responses')
  expect(headers).toEqual({})
})
