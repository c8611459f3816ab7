import { expect } from 'bun:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import type Anthropic from '@anthropic-ai/sdk'
import { streamText } from 'ai'
import { checkedFetch } from '#test/support/checked-fetch.ts'
import { type MessageClients, sdks } from '#test/support/message-clients.ts'

/**
 * The result of a request: a message, the status of an early failure, or a failure that may also
 * occur mid-stream.
 */
export type Outcome = { text: string; calls: unknown[]; stop: string } | 'failure' | number

const tools = [{ name: 'get_weather', input_schema: { type: 'object' as const } }]
const params = {
  max_tokens: 100,
  messages: [{ role: 'user' as const, content: 'Say hello.' }],
  tools,
}

/** Sends a request with every package, streamed and not, and expects the same result. */
export async function sendWithEveryClient(
  world: MessageClients,
  model: string,
  outcome: Outcome,
): Promise<void> {
  for (const { Sdk } of sdks) {
    const client = world.client(Sdk)
    const ways = [
      () => client.messages.create({ ...params, model }),
      () => client.messages.stream({ ...params, model }).finalMessage(),
      () =>
        client.beta.messages
          .stream({ ...params, model })
          .finalMessage() as Promise<unknown> as Promise<Anthropic.Message>,
    ]
    for (const ask of ways) expectOutcome(await ask().catch((error) => error), outcome)
  }
  expect(await readByAiSdk(world, model)).toEqual(
    outcome === 'failure' || typeof outcome === 'number' ? 'failure' : outcome.text,
  )
}

function expectOutcome(answer: Anthropic.Message & { status?: unknown }, outcome: Outcome): void {
  if (answer instanceof Error) {
    if (typeof outcome === 'object') throw answer
    if (typeof outcome === 'number') expect<unknown>(answer.status).toBe(outcome)
    return
  }
  const { content, stop_reason: stop, usage } = answer
  const seen = {
    text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    calls: content.flatMap((block) => (block.type === 'tool_use' ? [block.input] : [])),
    stop,
  }
  expect<unknown>(seen).toEqual(outcome)
  expect(usage.input_tokens).toBeNumber()
  expect(usage.output_tokens).toBeNumber()
}

/** The text, or the failure. Unsupported events are failures as well. */
async function readByAiSdk(world: MessageClients, model: string): Promise<string> {
  const provider = createAnthropic({
    baseURL: `${world.gateway.url}/compat/v1`,
    apiKey: world.apiKey,
    fetch: checkedFetch as typeof fetch,
  })
  const { stream } = streamText({
    model: provider(model),
    prompt: 'Say hello.',
    maxOutputTokens: 100,
    maxRetries: 0,
    onError: () => {},
  })
  let text = ''
  for await (const part of stream) {
    if (part.type === 'error') return 'failure'
    if (part.type === 'text-delta') text += part.text
  }
  return text
}
