import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createOpenResponses } from '@ai-sdk/open-responses'
import { createOpenAI } from '@ai-sdk/openai'
import { Agent, OpenAIProvider, Runner } from '@openai/agents'
import { type LanguageModel, streamText } from 'ai'
import { checkedFetch } from '#test/support/checked-fetch.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { stopUpstreams, upstreamThat } from '#test/support/generations.ts'
import { recordedPayloads, recordedStream, recordedStreamNames } from '#test/support/recordings.ts'
import type { ReplayUpstream } from '#test/support/replay-upstream.ts'
import {
  contentOfChat,
  contentOfResponsesStream,
  type ResponseContent,
} from '#test/support/response-content.ts'

/** Recorded responses of real servers in each client. */

const recordings = (['chat-completions', 'responses'] as const).flatMap((protocol) =>
  recordedStreamNames(protocol).map((name) => {
    const payloads = recordedPayloads(protocol, name)
    const content =
      protocol === 'chat-completions' ? contentOfChat(payloads) : contentOfResponsesStream(payloads)
    const isWhole = !payloads.some((payload) =>
      /"finish_reason": ?"length"|"status": ?"incomplete"/.test(payload),
    )
    return { protocol, name, content, isWhole }
  }),
)
const answers = recordings.filter(({ content }) => content.text !== '' || content.calls.length > 0)
/** Agents treat truncated output as a failure, and calls of tools require those tools. */
const texts = answers.filter(({ content, isWhole }) => isWhole && content.calls.length === 0)

describe('recorded traffic', () => {
  let upstream: ReplayUpstream
  let gateway: Gateway
  let models: Record<'openai' | 'responses', (model: string) => LanguageModel>
  let runner: Runner

  beforeAll(async () => {
    upstream = await upstreamThat({})
    gateway = await startGateway({
      upstream: [
        { url: upstream.baseUrl, models: ['chat-completions'] },
        { url: upstream.baseUrl, api: 'responses', models: ['responses'] },
      ],
    })
    const apiKey = await gateway.token()
    const baseURL = `${gateway.url}/v1`
    const fetch = checkedFetch as typeof globalThis.fetch
    models = {
      openai: createOpenAI({ baseURL, apiKey, fetch }),
      responses: createOpenResponses({ name: 'x', url: `${baseURL}/responses`, apiKey, fetch }),
    }
    const openAIClient = await gateway.openai()
    runner = new Runner({
      modelProvider: new OpenAIProvider({ openAIClient, useResponses: true }),
      tracingDisabled: true,
    })
  })
  afterAll(async () => {
    await gateway.stop()
    await stopUpstreams()
  })

  /** The parts of a stream as the AI SDK returns them. */
  async function readContent(model: LanguageModel): Promise<ResponseContent> {
    const content: ResponseContent = { text: '', reasoning: '', calls: [] }
    const { stream } = streamText({ model, prompt: 'x', maxRetries: 0, onError: () => {} })
    for await (const part of stream) {
      if (part.type === 'error') throw part.error
      if (part.type === 'text-delta') content.text += part.text
      if (part.type === 'tool-input-start' && part.providerExecuted !== true) {
        content.calls.push({ name: part.toolName, input: '' })
      }
    }
    return content
  }

  const cases = answers.flatMap((recording) =>
    (['openai', 'responses'] as const).map((provider) => ({ ...recording, provider })),
  )
  test.each(cases)(
    '$name with the AI SDK, by $provider',
    async ({ protocol, name, content, provider }) => {
      upstream.answer({ body: recordedStream(protocol, name) })
      const seen = await readContent(models[provider](protocol))
      expect(seen.text).toBe(content.text)
      // Nothing can handle calls of undefined custom tools.
      for (const call of seen.calls)
        expect(content.calls.map((one) => one.name)).toContain(call.name)
    },
  )

  test.each(texts)('$name with an agent', async ({ protocol, name, content }) => {
    upstream.answer({ body: recordedStream(protocol, name) })
    const agent = new Agent({ name: 'Reader', model: protocol })
    const result = await runner.run(agent, 'x', { stream: true })
    const pieces = await Array.fromAsync(result.toTextStream())
    await result.completed
    expect(pieces.join('')).toBe(content.text)
  })
})
