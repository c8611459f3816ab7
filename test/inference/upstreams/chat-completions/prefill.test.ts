import { expect, test } from 'bun:test'
import type { RequestItem } from '#inference/request.ts'
import { createToolNames } from '#inference/tools.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { encodeChatRequest } from '#inference/upstreams/chat-completions/encode.ts'
import { encodeRequest } from '#inference/upstreams/responses/encode.ts'
import { defaultQuirks, makeRequest, userMessage } from '#test/support/generation.ts'

/** A request whose last message is the beginning of the answer. */
const beginning: RequestItem = {
  type: 'message',
  role: 'assistant',
  parts: [{ type: 'text', text: '{"a":' }],
}
const request = makeRequest({ items: [userMessage('JSON?'), beginning], prefilled: true })

function encode(prefill: UpstreamQuirks['prefill'], given = request) {
  const quirks = { ...defaultQuirks, prefill }
  return encodeChatRequest(given, { model: 'm', quirks, toolNames: createToolNames(given) })
}

const messages = [
  { role: 'user', content: 'JSON?' },
  { role: 'assistant', content: '{"a":' },
]

test('is sent as it is where the upstream goes on by itself', () => {
  expect(encode('automatic')).toMatchObject({ messages })
  expect(encode('automatic')).not.toHaveProperty('continue_final_message')
})

test('says that it is to go on where the upstream wants to be told', () => {
  expect(encode('continue_final_message')).toMatchObject({
    messages,
    continue_final_message: true,
    add_generation_prompt: false,
  })
  expect(encode('prefix')['messages']).toEqual([messages[0], { ...messages[1], prefix: true }])
})

test('is refused where the upstream would only begin anew', () => {
  const sentence = 'This model cannot continue a prefilled response'
  expect(() => encode('none')).toThrow(sentence)
  const target = { model: 'm', targetName: 'x/m', quirks: defaultQuirks }
  expect(() => encodeRequest(request, target)).toThrow(sentence)
})

test('is nothing that a request which merely ends with the assistant asks for', () => {
  const { prefilled: _, ...other } = request
  for (const quirk of ['none', 'prefix', 'continue_final_message'] as const) {
    expect(encode(quirk, other)['messages']).toEqual(messages)
    expect(encode(quirk, other)).not.toHaveProperty('continue_final_message')
  }
})
