import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import type Anthropic from '@anthropic-ai/sdk'
import { streamText } from 'ai'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { checkedFetch } from '#test/support/checked-fetch.ts'
import { type MessageClients, sdks, startMessageClients } from '#test/support/message-clients.ts'
import { recordedPayloads, recordedStream, recordedStreamNames } from '#test/support/recordings.ts'
import {
  contentOfChat,
  contentOfResponsesStream,
  type ResponseContent,
} from '#test/support/response-content.ts'

/** Recorded responses of real servers in each client package. */

const contentOf = {
  'chat-completions': contentOfChat,
  responses: contentOfResponsesStream,
  messages: contentOfMessages,
}
const modelOf = { 'chat-completions': 'chat', responses: 'responses', messages: 'messages' }
/** It restarts in the middle, so it is not a valid stream. */
const broken = 'spliced-message-start.chunks.txt'
/** It completes a call that was cut off at the limit, which is an error on /compat. */
const cutCall = 'llama.cpp-responses-tool-call-limit.sse'

const recordings = (['chat-completions', 'responses', 'messages'] as const).flatMap((protocol) =>
  recordedStreamNames(protocol)
    .filter((name) => name !== broken && name !== cutCall)
    .map((name) => {
      const content = contentOf[protocol](recordedPayloads(protocol, name))
      return { protocol, name, model: modelOf[protocol], content }
    }),
)
const answers = recordings.filter(({ content }) => content.text !== '' || content.calls.length > 0)

describe('recorded traffic', () => {
  let world: MessageClients
  beforeAll(async () => {
    world = await startMessageClients()
  })
  afterAll(() => world.stop())

  const params = { max_tokens: 100, messages: [{ role: 'user' as const, content: 'x' }] }

  test.each(answers)('$protocol/$name with the package of the format', async (recording) => {
    const { protocol, name, model, content } = recording
    world.upstream.answer({ body: recordedStream(protocol, name) })
    for (const { Sdk } of sdks) {
      const client = world.client(Sdk)
      const whole = await client.messages.create({ model, ...params })
      const streamed = await client.messages.stream({ model, ...params }).finalMessage()
      const beta = await client.beta.messages.stream({ model, ...params }).finalMessage()
      for (const message of [whole, streamed, beta]) {
        const seen = read(message.content)
        expect(seen.text).toBe(content.text)
        expect(seen.calls).toEqual(content.calls.map(({ name: tool }) => tool))
      }
      // Seals and generated ids differ each time.
      expect(streamed.content.map(({ type }) => type)).toEqual(
        whole.content.map(({ type }) => type),
      )
      expect(streamed.stop_reason).toBe(whole.stop_reason)
      expect(streamed.usage.output_tokens).toBe(whole.usage.output_tokens)
    }
  })

  test.each(answers)(
    '$protocol/$name with the AI SDK',
    async ({ protocol, name, model, content }) => {
      world.upstream.answer({ body: recordedStream(protocol, name) })
      const provider = createAnthropic({
        baseURL: `${world.gateway.url}/compat/v1`,
        apiKey: world.apiKey,
        fetch: checkedFetch as typeof fetch,
      })
      const { stream } = streamText({
        model: provider(model),
        prompt: 'x',
        maxOutputTokens: 100,
        maxRetries: 0,
        onError: () => {},
      })
      let text = ''
      for await (const part of stream) {
        if (part.type === 'error') throw part.error
        if (part.type === 'text-delta') text += part.text
      }
      expect(text).toBe(content.text)
    },
  )
})

type Content = Anthropic.Message['content'] | Anthropic.Beta.BetaMessage['content']

function read(content: Content) {
  return {
    text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    calls: content.flatMap((block) => (block.type === 'tool_use' ? [block.name] : [])),
  }
}

/** The first message of these payloads, built by joining their fields. */
function contentOfMessages(payloads: readonly string[]): ResponseContent {
  const content: ResponseContent = { text: '', reasoning: '', calls: [] }
  for (const payload of payloads) {
    const { type: event, content_block: block, delta, message } = object(parseJson(payload))
    if (event === 'message_stop') break
    const { content: given } = object(message)
    const begun = [block, ...(Array.isArray(given) ? given : [])].map(object)
    for (const { type, name } of begun) {
      if (type === 'tool_use') content.calls.push({ name: String(name), input: '' })
    }
    const { type, text } = object(delta)
    if (type === 'text_delta') content.text += text
  }
  return content
}

function object(value: unknown): JsonObject {
  return isRecord(value) ? value : {}
}
