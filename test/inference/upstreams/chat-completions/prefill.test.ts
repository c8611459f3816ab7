import { expect, test } from 'bun:test'
import type { RequestItem } from '#inference/request.ts'
import { createToolNames } from '#inference/tools.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { encodeChatRequest } from '#inference/upstreams/chat-completions/encode.ts'
import { encodeRequest } from '#inference/upstreams/responses/encode.ts'
import { defaultQuirks, makeRequest, userMessage } from '#test/support/generation.ts'

/** A request that ends with a prefill. */
const beginning: RequestItem = {
  type: 'message',
  role: 'assistant',
  parts: [{ type: 'text', text: '{"a":' }],
}
const request = makeRequest({ items: [userMessage('JSON?'), beginning], prefilled: true })

function encode(prefill: UpstreamQuirks['prefill'], given = request) {
  const quirks = { ...defaultQuirks, prefill }
  return encodeChatRequest(given, {
    model: 'm',
    targetName: 'upstream/m',
    quirks,
    toolNames: createToolNames(given),
  })
}

const messages = [
  { role: 'user', content: 'JSON?' },
  { role: 'assistant', content: '{"a":' },
]

test('is sent unchanged if the upstream continues automatically', () => {
  expect(encode('automatic')).toMatchObject({ messages })
  expect(encode('automatic')).not.toHaveProperty('continue_final_message')
})

test('sets the continuation field that the upstream requires', () => {
  expect(encode('continue_final_message')).toMatchObject({
    messages,
    continue_final_message: true,
    add_generation_prompt: false,
  })
  expect(encode('prefix')['messages']).toEqual([messages[0], { ...messages[1], prefix: true }])
})

test('is rejected if the upstream cannot continue a message', () => {
  const sentence = 'This model cannot continue a prefilled response'
  expect(() => encode('none')).toThrow(sentence)
  const target = { model: 'm', targetName: 'x/m', quirks: defaultQuirks }
  expect(() => encodeRequest(request, target)).toThrow(sentence)
})

test('is not assumed for a request that merely ends with an assistant message', () => {
  const { prefilled: _, ...other } = request
  for (const quirk of ['none', 'prefix', 'continue_final_message'] as const) {
    expect(encode(quirk, other)['messages']).toEqual(messages)
    expect(encode(quirk, other)).not.toHaveProperty('continue_final_message')
  }
})
