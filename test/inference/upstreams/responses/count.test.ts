import { afterEach, expect, test } from 'bun:test'
import { responses } from '#inference/upstreams/responses/adapter.ts'
import { makeContext, makeRequest } from '#test/support/generation.ts'
import { countingUpstream, jsonAnswer, stopCounting } from '#test/support/token-counting.ts'

afterEach(stopCounting)

test('a count request contains only the fields that form the prompt', async () => {
  const upstream = await countingUpstream(() => jsonAnswer({ input_tokens: 40 }))
  const request = makeRequest({
    instructions: 'Be brief.',
    reasoning: { effort: 'low', summary: null },
    sampling: { ...makeRequest().sampling, temperature: 0.5, maxOutputTokens: 100 },
  })
  const context = makeContext({ baseUrl: upstream.baseUrl })
  expect(await responses.countTokens?.(request, context)).toBe(40)
  const [asked] = upstream.requests
  expect(`${asked?.method} ${asked?.path}`).toBe('POST /v1/responses/input_tokens')
  expect(JSON.parse(asked?.body ?? '')).toEqual({
    model: 'upstream-model',
    instructions: 'Be brief.',
    input: [expect.objectContaining({ role: 'user' })],
    reasoning: { effort: 'low' },
  })
})
