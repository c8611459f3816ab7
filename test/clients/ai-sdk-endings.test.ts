import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createOpenResponses } from '@ai-sdk/open-responses'
import { createOpenAI, type OpenAIProvider } from '@ai-sdk/openai'
import { generateText, type LanguageModel, streamText } from 'ai'
import { checkedFetch } from '#test/support/checked-fetch.ts'
import {
  type ClientGateway,
  expectRecall,
  kinds,
  slowPrompt,
  startClientGateway,
} from '#test/support/client-gateway.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

/** The AI SDK with failed, truncated, aborted and unstored responses. */

const connect = async (gateway: Gateway) => {
  const apiKey = await gateway.token()
  const baseURL = `${gateway.url}/v1`
  const fetch = checkedFetch as typeof globalThis.fetch
  return {
    openai: createOpenAI({ baseURL, apiKey, fetch }),
    responses: createOpenResponses({ name: 'sluice', url: `${baseURL}/responses`, apiKey, fetch }),
  }
}

describe.each(['openai', 'responses'] as const)('the provider of the AI SDK: %s', (provider) => {
  let gateway: Gateway
  let open: (model: string) => LanguageModel
  beforeAll(async () => {
    gateway = await startGateway()
    open = (await connect(gateway))[provider]
  })
  afterAll(() => gateway.stop())

  test('reports truncated output as the finish reason length', async () => {
    const whole = await generateText({ model: open('demo-length'), prompt: 'Say hello.' })
    expect(whole.finishReason).toBe('length')
    const stream = streamText({ model: open('demo-length'), prompt: 'Say hello.' })
    expect([await stream.text, await stream.finishReason]).toEqual([whole.text, 'length'])
  })

  test('reports a failure before the first token as an error with its status', async () => {
    const failure = await generateText({
      model: open('demo-fail'),
      prompt: 'Say hello.',
      maxRetries: 0,
    }).catch((error) => error)
    expect(failure.statusCode).toBe(502)
    // One of the providers shows the message only of errors with a `param`.
    expect(failure.responseBody).toContain('as requested')
  })

  test('delivers the output before a failure, then the failure', async () => {
    const errors: unknown[] = []
    const { stream } = streamText({
      model: open('demo-fail-midway'),
      prompt: 'Say hello.',
      onError: ({ error }) => {
        errors.push(error)
      },
    })
    let text = ''
    for await (const part of stream) if (part.type === 'text-delta') text += part.text
    expect(text).toStartWith('These words arrive')
    expect(JSON.stringify(errors)).toContain('as requested')
  })

  test('can be aborted', async () => {
    const stopping = new AbortController()
    const { stream } = streamText({
      model: open('demo-quiet'),
      prompt: slowPrompt,
      abortSignal: stopping.signal,
    })
    const types: string[] = []
    for await (const { type } of stream) {
      types.push(type)
      if (type === 'text-start') stopping.abort()
    }
    expect(types.at(-1)).toBe('abort')
  })
})

describe.each(kinds)('with nothing stored, over a $kind upstream', ({ kind, reasoning, slow }) => {
  let server: ClientGateway
  let openai: OpenAIProvider
  beforeAll(async () => {
    server = await startClientGateway(kind)
    openai = (await connect(server.gateway)).openai
  })
  afterAll(() => server.stop())

  const stateless = {
    openai: { store: false, forceReasoning: true, include: ['reasoning.encrypted_content'] },
  }

  test('encrypted reasoning is replayed in a second turn', async () => {
    const prompt = 'think: is it so?'
    const first = streamText({ model: openai(reasoning), prompt, providerOptions: stateless })
    const [{ messages }, thought = ''] = [await first.response, await first.reasoningText]
    const second = await generateText({
      model: openai(reasoning),
      providerOptions: stateless,
      messages: [
        { role: 'user', content: prompt },
        ...messages,
        { role: 'user', content: 'recall it' },
      ],
    })
    expect(second.warnings ?? []).toEqual([])
    const answer = { text: second.text, inputTokens: second.usage.inputTokens }
    expectRecall(kind, answer, [prompt, thought, await first.text])
  })

  test('an aborted request ends at once', async () => {
    const stopping = new AbortController()
    const { stream } = streamText({
      model: openai(slow),
      prompt: slowPrompt,
      providerOptions: stateless,
      abortSignal: stopping.signal,
    })
    for await (const { type } of stream) if (type === 'text-start') stopping.abort()
    await eventually('it is over', () => server.gateway.deps.inference.running() === 0)
  })
})
