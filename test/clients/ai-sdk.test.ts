import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createOpenResponses } from '@ai-sdk/open-responses'
import { createOpenAI } from '@ai-sdk/openai'
import { generateText, isStepCount, type LanguageModel, Output, streamText, tool } from 'ai'
import { z } from 'zod'
import { checkedFetch } from '#test/support/checked-fetch.ts'
import {
  type ClientGateway,
  expectRecall,
  kinds,
  startClientGateway,
} from '#test/support/client-gateway.ts'

/** The AI SDK with both of its providers. */

const providers = ['@ai-sdk/openai', '@ai-sdk/open-responses'] as const
const matrix = providers.flatMap((provider) => kinds.map((kind) => ({ provider, ...kind })))

const weather = tool({
  description: 'The weather of a city.',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `sunny in ${city}`,
})

describe.each(matrix)('$provider over a $kind upstream', (row) => {
  const { provider, kind, model, tools, reasoning } = row
  let server: ClientGateway
  let open: (model: string) => LanguageModel

  beforeAll(async () => {
    server = await startClientGateway(kind)
    const apiKey = await server.gateway.token()
    const baseURL = `${server.gateway.url}/v1`
    open =
      provider === '@ai-sdk/openai'
        ? createOpenAI({ baseURL, apiKey, fetch: checkedFetch as typeof fetch })
        : createOpenResponses({
            name: 'sluice',
            url: `${baseURL}/responses`,
            apiKey,
            fetch: checkedFetch as typeof fetch,
          })
  })
  afterAll(() => server.stop())

  test('generateText returns text and usage', async () => {
    const result = await generateText({ model: open(model), prompt: 'Say hello.' })
    expect(result.text.length).toBeGreaterThan(5)
    expect(result.finishReason).toBe('stop')
    expect(result.usage.outputTokens).toBeGreaterThan(0)
    expect(result.warnings ?? []).toEqual([])
  })

  test('streamText returns the same text in pieces', async () => {
    const result = streamText({ model: open(model), prompt: 'Say hello.' })
    const pieces = await Array.fromAsync(result.textStream)
    expect(pieces.length).toBeGreaterThan(1)
    expect(pieces.join('')).toBe(await result.text)
    expect(await result.finishReason).toBe('stop')
  })

  test('a second turn gets the history of the first', async () => {
    const introduction = 'My name is Ada and I like the sea and the wind.'
    const first = await generateText({ model: open(model), prompt: introduction })
    const second = streamText({
      model: open(model),
      messages: [
        { role: 'user', content: introduction },
        ...first.response.messages,
        { role: 'user', content: 'recall it' },
      ],
    })
    const [text, { inputTokens }] = [await second.text, await second.usage]
    expectRecall(kind, { text, inputTokens }, [introduction, first.text])
  })

  test.each([false, true])('a tool loop reaches its final answer (stream: %p)', async (stream) => {
    const call = {
      model: open(tools),
      prompt: 'Weather in Oslo?',
      tools: { get_weather: weather },
      stopWhen: isStepCount(4),
    }
    const result = stream ? streamText(call) : await generateText(call)
    const steps = await result.steps
    expect(steps).toHaveLength(2)
    const [called] = steps[0]?.toolResults ?? []
    expect(called?.toolName).toBe('get_weather')
    expect(await result.text).toContain(String(called?.output))
  })

  test('parallel calls are answered together', async () => {
    const result = await generateText({
      model: open(tools),
      prompt: 'parallel: the weather in Oslo and Rome?',
      tools: { get_weather: weather, ...(kind === 'demo' ? { get_time: weather } : {}) },
      stopWhen: isStepCount(4),
    })
    expect(result.steps[0]?.toolResults).toHaveLength(2)
    expect(result.text).toContain('sunny in')
  })

  test.each([false, true])('reasoning is returned once (stream: %p)', async (stream) => {
    const call = { model: open(reasoning), prompt: 'think: is it so?' }
    const result = stream ? streamText(call) : await generateText(call)
    const thought = (await result.reasoningText) ?? ''
    expect(thought).toContain(kind === 'demo' ? 'I will repeat what it says.' : 'Hm, yes.')
    expect(thought.split(kind === 'demo' ? 'I will repeat' : 'Hm, yes.')).toHaveLength(2)
    expect(await result.text).not.toBe('')
  })

  test('reasoning is replayed in a second turn', async () => {
    const prompt = 'think: is it so?'
    const first = streamText({ model: open(reasoning), prompt })
    const [{ messages }, thought = ''] = [await first.response, await first.reasoningText]
    const second = await generateText({
      model: open(reasoning),
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

  test.each([false, true])('structured output is an object (stream: %p)', async (stream) => {
    const call = {
      model: open(model),
      prompt: 'The answer?',
      output: Output.object({ schema: z.object({ answer: z.number() }) }),
    }
    const result = stream ? streamText(call) : await generateText(call)
    expect(typeof (await result.output).answer).toBe('number')
  })

  test('a model that does not exist is an error with its message', async () => {
    const failure = await generateText({ model: open('nope'), prompt: 'x', maxRetries: 0 }).catch(
      (error) => error,
    )
    expect(failure.statusCode).toBe(404)
    expect(failure.message).toContain('nope')
  })
})
