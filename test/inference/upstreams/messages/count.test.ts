import { afterEach, describe, expect, test } from 'bun:test'
import type { GenerationRequest } from '#inference/request.ts'
import { messages } from '#inference/upstreams/messages/adapter.ts'
import { makeContext, makeRequest } from '#test/support/generation.ts'
import { countingUpstream, jsonAnswer, stopCounting } from '#test/support/token-counting.ts'

afterEach(stopCounting)

async function count(request: GenerationRequest) {
  const upstream = await countingUpstream(() => jsonAnswer({ input_tokens: 40 }))
  const tokens = await messages.countTokens?.(request, makeContext({ baseUrl: upstream.baseUrl }))
  const [asked] = upstream.requests
  return { tokens, asked, body: JSON.parse(asked?.body ?? '') }
}

describe('the count request', () => {
  test('without generation parameters', async () => {
    const { tokens, asked, body } = await count(makeRequest({ instructions: 'Be brief.' }))
    expect(tokens).toBe(40)
    expect(`${asked?.method} ${asked?.path}`).toBe('POST /v1/messages/count_tokens')
    expect(asked?.headers['x-api-key']).toBe('a-secret')
    expect(body).toMatchObject({ model: 'upstream-model', system: 'Be brief.' })
    expect(Object.keys(body).toSorted()).toEqual(['messages', 'model', 'system'])
  })

  test('with the body and headers of a relayed request', async () => {
    const body = {
      model: 'asked-name',
      max_tokens: 100,
      stream: true,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      stop_sequences: ['END'],
      metadata: { user_id: 'ann' },
      service_tier: 'auto',
      container: 'container_1',
      inference_geo: 'eu',
      diagnostics: {},
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
      messages: [{ role: 'user', content: 'Hello' }],
      thinking: { type: 'enabled', budget_tokens: 2_048 },
      tools: [{ name: 'look_up', input_schema: { type: 'object' } }],
    }
    const headers = { 'anthropic-version': '2026-10-21', 'anthropic-beta': 'a-feature' }
    const origin = { protocol: 'messages', body, headers, openSeal: () => null } as const
    const { tokens, asked, body: sent } = await count(makeRequest({ origin }))
    expect(tokens).toBe(40)
    expect(asked?.headers).toMatchObject(headers)
    const { system, messages: turns, thinking, tools } = body
    expect(sent).toEqual({ model: 'upstream-model', system, messages: turns, thinking, tools })
  })
})
