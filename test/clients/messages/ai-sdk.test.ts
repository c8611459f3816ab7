import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import {
  defaultSettingsMiddleware,
  generateText,
  isStepCount,
  type LanguageModel,
  Output,
  streamText,
  tool,
  wrapLanguageModel,
} from 'ai'
import { z } from 'zod'
import { checkedFetch } from '#test/support/checked-fetch.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  type MessageClients,
  messageKinds,
  scriptedAnswer,
  startMessageClients,
} from '#test/support/message-clients.ts'
import { errorAnswer, signatureOf } from '#test/support/strict-messages-upstream.ts'
import { unfinishedResponse } from '#test/support/unfinished-response.ts'

/** The AI SDK with its provider of the Messages format. */

let world: MessageClients
let open: (model: string) => LanguageModel
beforeAll(async () => {
  world = await startMessageClients({ retry: { retriesMax: 0 } })
  const provider = createAnthropic({
    baseURL: `${world.gateway.url}/compat/v1`,
    apiKey: world.apiKey,
    fetch: checkedFetch as typeof fetch,
  })
  // Otherwise the package warns at each call about an unknown model.
  const middleware = defaultSettingsMiddleware({ settings: { maxOutputTokens: 1_000 } })
  open = (name) => wrapLanguageModel({ model: provider(name), middleware })
})
afterAll(() => world.stop())
afterEach(() => world.upstream.answer(scriptedAnswer))

const weather = tool({
  description: 'The weather of a city.',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `sunny in ${city}`,
})
const thinking = { anthropic: { thinking: { type: 'enabled' as const, budgetTokens: 1024 } } }
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

describe.each(messageKinds)(
  'the AI SDK over a $kind upstream',
  ({ kind, model, tools, reasoning, slow }) => {
    test('generateText returns text and usage', async () => {
      const result = await generateText({ model: open(model), prompt: 'Say hello.' })
      expect(result.text).toContain('ello')
      expect(result.finishReason).toBe('stop')
      expect(result.usage.inputTokens).toBeGreaterThan(0)
      expect(result.usage.outputTokens).toBeGreaterThan(0)
    })

    test('streamText returns the same text in pieces, without error parts', async () => {
      const whole = await generateText({ model: open(model), prompt: 'Say hello.' })
      const result = streamText({ model: open(model), prompt: 'Say hello.' })
      const pieces: string[] = []
      for await (const part of result.stream) {
        if (part.type === 'error') throw part.error
        if (part.type === 'text-delta') pieces.push(part.text)
      }
      expect(pieces.length).toBeGreaterThan(1)
      expect(pieces.join('')).toBe(whole.text)
      expect(await result.finishReason).toBe('stop')
      expect((await result.usage).outputTokens).toBe(Number(whole.usage.outputTokens))
    })

    test('a second turn gets the history of the first', async () => {
      const introduction = 'My name is Ada and I like the sea and the wind.'
      const first = await generateText({ model: open(model), prompt: introduction })
      const result = streamText({
        model: open(model),
        instructions: 'Be kind.',
        messages: [
          { role: 'user', content: introduction },
          ...first.response.messages,
          { role: 'user', content: 'recall it' },
        ],
      })
      const all = [introduction, first.text]
      if (kind === 'demo') {
        expect((await result.usage).inputTokens).toBeGreaterThan(all.join(' ').split(/\s+/).length)
      } else {
        for (const words of all) expect(await result.text).toContain(words)
        expect(JSON.stringify(world.asked())).toContain('Be kind.')
      }
    })

    test.each([false, true])(
      'a tool loop reaches its final answer (stream: %p)',
      async (stream) => {
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
      },
    )

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

    test('reasoning is returned, and replayed in a second turn', async () => {
      const prompt = 'think: is it so?'
      const options = { model: open(reasoning), providerOptions: thinking }
      const first = streamText({ ...options, prompt })
      const [{ messages }, thought] = [await first.response, await first.reasoningText]
      expect(thought).toContain(kind === 'demo' ? 'I will repeat what it says.' : 'Hm, yes.')
      const second = await generateText({
        ...options,
        model: open(model),
        messages: [
          { role: 'user', content: prompt },
          ...messages,
          { role: 'user', content: 'recall it' },
        ],
      })
      expect(second.text).not.toBe('')
      if (kind !== 'demo') expect(JSON.stringify(world.asked())).toContain('Hm, yes.')
      if (kind === 'messages')
        expect(JSON.stringify(world.asked())).toContain(signatureOf('Hm, yes.'))
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

    test('an image reaches the model', async () => {
      const content = [
        { type: 'text' as const, text: 'What is it?' },
        { type: 'file' as const, data: png, mediaType: 'image/png' },
      ]
      const { finishReason } = await generateText({
        model: open(model),
        messages: [{ role: 'user', content }],
      })
      expect(finishReason).toBe('stop')
      if (kind !== 'demo') expect(JSON.stringify(world.asked())).toContain(png.toString('base64'))
    })

    test('output ends at a stop sequence', async () => {
      const [sequence, before] = kind === 'demo' ? ['ay hel', 'You said: S'] : ['o wör', 'Hell']
      const result = streamText({
        model: open(model),
        prompt: 'Say hello.',
        stopSequences: [sequence],
      })
      expect(await result.text).toBe(before)
      expect(await result.finishReason).toBe('stop')
      expect(JSON.stringify(await result.finalStep)).toContain(sequence)
    })

    test('aborting a request aborts the upstream request', async () => {
      if (kind !== 'demo') world.upstream.answer(unfinishedResponse(kind))
      const stopping = new AbortController()
      const { stream } = streamText({
        model: open(slow),
        prompt: 'be quiet 3600',
        abortSignal: stopping.signal,
      })
      const types: string[] = []
      for await (const { type } of stream) {
        types.push(type)
        if (type === 'text-delta') stopping.abort()
      }
      expect(types.at(-1)).toBe('abort')
      await eventually('it is over', () => world.gateway.deps.inference.running() === 0)
    })
  },
)

describe('the AI SDK', () => {
  const fail = (model: string) =>
    generateText({ model: open(model), prompt: 'x', maxRetries: 0 }).catch((error) => error)

  test('reports the cause of a failure', async () => {
    const missing = await fail('nope')
    expect([missing.statusCode, missing.message]).toEqual([404, 'model: nope'])
    const broken = await fail('demo-fail')
    expect(broken.statusCode).toBe(502)
    expect(broken.message).toContain('as requested')
    world.upstream.answer(errorAnswer(529, 'overloaded_error', 'Busy.'))
    const busy = await fail('messages')
    expect([busy.statusCode, busy.message, busy.isRetryable]).toEqual([529, 'Busy.', true])
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

  test('reports truncated output and a refusal', async () => {
    const cut = await generateText({ model: open('demo-length'), prompt: 'Say hello.' })
    expect(cut.finishReason).toBe('length')
    const refused = streamText({ model: open('demo-refusal'), prompt: 'Say hello.' })
    expect(await refused.text).toContain('I will not answer that')
    expect(await refused.finishReason).toBe('content-filter')
  })
})
