import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  Agent,
  handoff,
  OpenAIConversationsSession,
  OpenAIProvider,
  OpenAIResponsesCompactionSession,
  Runner,
  tool,
  withResponsesWebSocketSession,
} from '@openai/agents'
import type OpenAI from 'openai'
import { z } from 'zod'
import {
  type ClientGateway,
  expectRecall,
  kinds,
  pickyName,
  startClientGateway,
} from '#test/support/client-gateway.ts'

/** Agents of the `@openai/agents` package. */

const introduction = 'My name is Ada and I like the sea and the wind.'

describe.each(kinds)('agents over a $kind upstream', ({ kind, model, tools }) => {
  let server: ClientGateway
  let client: OpenAI
  let runner: Runner

  beforeAll(async () => {
    server = await startClientGateway(kind)
    client = await server.gateway.openai()
    runner = new Runner({
      modelProvider: new OpenAIProvider({ openAIClient: client, useResponses: true }),
      tracingDisabled: true,
    })
  })
  afterAll(() => server.stop())

  const talker = new Agent({ name: 'Talker', instructions: 'Be kind.', model })
  const weather = tool({
    name: 'get_weather',
    description: 'The weather of a city.',
    parameters: z.object({ city: z.string() }),
    execute: async ({ city }) => `sunny in ${city}`,
  })
  const clerk = new Agent({ name: 'Clerk', model: tools, tools: [weather] })
  const front = new Agent({ name: 'Front', model: tools, handoffs: [handoff(clerk)] })
  const inputTokensOf = (result: { rawResponses: { usage: { inputTokens: number } }[] }) =>
    result.rawResponses.at(-1)?.usage.inputTokens

  test('an agent answers', async () => {
    const result = await runner.run(talker, 'Say hello.')
    expect(String(result.finalOutput).length).toBeGreaterThan(5)
  })

  test('an agent streams', async () => {
    const result = await runner.run(talker, 'Say hello.', { stream: true })
    const pieces = await Array.fromAsync(result.toTextStream())
    await result.completed
    expect(pieces.length).toBeGreaterThan(1)
    expect(pieces.join('')).toBe(String(result.finalOutput))
  })

  test.each([false, true])('an agent calls its tool (stream: %p)', async (stream) => {
    const result = stream
      ? await runner.run(clerk, 'Weather in Oslo?', { stream: true })
      : await runner.run(clerk, 'Weather in Oslo?')
    if ('completed' in result) {
      const names: string[] = []
      for await (const event of result) {
        if (event.type === 'run_item_stream_event') names.push(event.name)
      }
      expect(names).toEqual(['tool_called', 'tool_output', 'message_output_created'])
    }
    expect(result.finalOutput).toContain('sunny in')
  })

  test.each([false, true])('an agent hands over to another (stream: %p)', async (stream) => {
    const result = stream
      ? await runner.run(front, 'Weather in Oslo?', { stream: true })
      : await runner.run(front, 'Weather in Oslo?')
    if ('completed' in result) await result.completed
    expect(result.lastAgent?.name).toBe('Clerk')
    expect(String(result.finalOutput)).toContain('Clerk')
  })

  test('an agent answers in the requested output format', async () => {
    const typed = new Agent({ name: 'Typed', model, outputType: z.object({ answer: z.number() }) })
    const { finalOutput } = await runner.run(typed, 'The answer?')
    expect(typeof finalOutput?.answer).toBe('number')
  })

  test('a run continues from the history of another', async () => {
    const first = await runner.run(talker, introduction)
    const second = await runner.run(talker, [
      ...first.history,
      { role: 'user', content: 'recall it' },
    ])
    const answer = { text: String(second.finalOutput), inputTokens: inputTokensOf(second) }
    expectRecall(kind, answer, [introduction, String(first.finalOutput)])
  })

  test('a run continues from the last response', async () => {
    const first = await runner.run(clerk, 'Weather in Oslo?')
    const second = await runner.run(talker, 'recall it', {
      previousResponseId: String(first.lastResponseId),
    })
    const answer = { text: String(second.finalOutput), inputTokens: inputTokensOf(second) }
    expectRecall(kind, answer, ['Weather in Oslo?', String(first.finalOutput)])
  })

  test('a session in a conversation keeps its history', async () => {
    const session = new OpenAIConversationsSession({ client })
    const first = await runner.run(talker, introduction, { session })
    const second = await runner.run(talker, 'recall it', { session })
    const answer = { text: String(second.finalOutput), inputTokens: inputTokensOf(second) }
    expectRecall(kind, answer, [introduction, String(first.finalOutput)])
    expect(await session.getItems()).toHaveLength(4)
    await session.popItem()
    expect(await session.getItems()).toHaveLength(3)
    await session.clearSession()
  })

  test('a session that compacts itself keeps its history', async () => {
    const session = new OpenAIResponsesCompactionSession({
      client,
      model: pickyName,
      shouldTriggerCompaction: ({ compactionCandidateItems: items }) => items.length > 0,
    })
    const first = await runner.run(talker, introduction, { session })
    const items = await session.getItems()
    expect(items.map(({ type }) => type)).toContain('compaction')
    const second = await runner.run(talker, 'recall it', { session })
    const answer = { text: String(second.finalOutput), inputTokens: inputTokensOf(second) }
    // The package sends the compaction without the messages that were kept beside it.
    expectRecall(kind, answer, [String(first.finalOutput)])
  })

  test.each([false, true])('an agent works over a WebSocket (stream: %p)', async (stream) => {
    const output = await withResponsesWebSocketSession(
      async ({ run }) => {
        const result = stream
          ? await run(clerk, 'Weather in Oslo?', { stream: true })
          : await run(clerk, 'Weather in Oslo?')
        if ('completed' in result) await result.completed
        return result.finalOutput
      },
      { providerOptions: { openAIClient: client }, runnerConfig: { tracingDisabled: true } },
    )
    expect(output).toContain('sunny in')
  })
})
