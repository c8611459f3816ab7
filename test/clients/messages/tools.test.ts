import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type Anthropic from '@anthropic-ai/sdk'
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema'
import { betaTool as olderBetaTool } from '@anthropic-ai/sdk-0137/helpers/beta/json-schema'
import {
  type MessageClients,
  sdkMatrix,
  startMessageClients,
} from '#test/support/message-clients.ts'

/** Tool calls of the `@anthropic-ai/sdk` package, in each of its dialects. */

let world: MessageClients
beforeAll(async () => {
  world = await startMessageClients()
})
afterAll(() => world.stop())

const schema = {
  type: 'object',
  properties: { city: { type: 'string' } },
} as const
const weather: Anthropic.Tool = {
  name: 'get_weather',
  description: 'The weather of a city.',
  input_schema: { ...schema, required: ['city'] },
}
const time: Anthropic.Tool = { name: 'get_time', input_schema: schema }

const user = (content: Anthropic.MessageParam['content']) => ({ role: 'user' as const, content })
const callsOf = ({ content }: Pick<Anthropic.Message, 'content'>) =>
  content.filter((block) => block.type === 'tool_use')
const textOf = ({ content }: Pick<Anthropic.Message, 'content'>) =>
  content.map((block) => (block.type === 'text' ? block.text : '')).join('')
const results = (calls: readonly Anthropic.ToolUseBlock[], isError = false) =>
  user(
    calls.map(({ id, input }) => ({
      type: 'tool_result',
      tool_use_id: id,
      content: `sunny in ${Object(input).city}`,
      ...(isError ? { is_error: true } : {}),
    })),
  )

describe.each(sdkMatrix)(
  'the package $sdk over a $kind upstream',
  ({ sdk, Sdk, kind, tools: model }) => {
    let client: Anthropic
    beforeAll(() => {
      client = world.client(Sdk)
    })
    const base = { model, max_tokens: 200 }

    test.each([false, true])('calls a tool and sends its result (stream: %p)', async (stream) => {
      const send = (messages: Anthropic.MessageParam[]) => {
        const params = { ...base, messages, tools: [weather] }
        return stream
          ? client.messages.stream(params).finalMessage()
          : client.messages.create(params)
      }
      const question = user('The weather in Oslo?')
      const first = await send([question])
      const calls = callsOf(first)
      expect(first.stop_reason).toBe('tool_use')
      expect(calls).toMatchObject([{ name: 'get_weather', input: { city: expect.any(String) } }])
      const turn = { role: 'assistant' as const, content: first.content }
      const second = await send([question, turn, results(calls)])
      expect(second.stop_reason).toBe('end_turn')
      expect(textOf(second)).toContain(`sunny in ${Object(calls[0]?.input).city}`)
    })

    test('streams the input of a call', async () => {
      const messages = [user('The weather in Oslo?')]
      const stream = client.messages.stream({ ...base, messages, tools: [weather] })
      const pieces: string[] = []
      let snapshot: unknown
      stream.on('inputJson', (piece, grown) => {
        pieces.push(piece)
        snapshot = grown
      })
      const [call] = callsOf(await stream.finalMessage())
      expect(JSON.parse(pieces.join(''))).toEqual(call?.input)
      expect(snapshot).toEqual(call?.input)
    })

    test.each([false, true])(
      'makes two calls at once, and sends both results (stream: %p)',
      async (stream) => {
        const messages = [user('parallel: the weather in Oslo and Rome?')]
        const params = { ...base, messages, tools: kind === 'demo' ? [weather, time] : [weather] }
        const first = stream
          ? await client.messages.stream(params).finalMessage()
          : await client.messages.create(params)
        const calls = callsOf(first)
        expect(calls).toHaveLength(2)
        expect(new Set(calls.map(({ id }) => id)).size).toBe(2)
        const second = await client.messages.create({
          ...params,
          messages: [
            ...messages,
            { role: 'assistant', content: first.content },
            results(calls.toReversed()),
          ],
        })
        expect(textOf(second)).toContain('sunny in')
      },
    )

    test('gets at most one call if parallel calls are disabled, on every upstream', async () => {
      const messages = [user('parallel: the weather in Oslo and Rome?')]
      const choice = { type: 'auto' as const, disable_parallel_tool_use: true }
      const params = { ...base, messages, tools: [weather, time], tool_choice: choice }
      expect(callsOf(await client.messages.create(params))).toHaveLength(1)
      const streamed = await client.messages.stream(params).finalMessage()
      expect(callsOf(streamed)).toHaveLength(1)
      expect(streamed.stop_reason).toBe('tool_use')
    })

    test('reports a failed tool to the model', async () => {
      const question = user('The weather in Oslo?')
      const first = await client.messages.create({
        ...base,
        messages: [question],
        tools: [weather],
      })
      const turn = { role: 'assistant' as const, content: first.content }
      const messages = [question, turn, results(callsOf(first), true)]
      const { stop_reason: reason } = await client.messages.create({
        ...base,
        messages,
        tools: [weather],
      })
      expect(reason).toBe('end_turn')
      const failureMark = kind === 'messages' ? '"is_error":true' : '[The tool failed]'
      if (kind !== 'demo') expect(JSON.stringify(world.asked())).toContain(failureMark)
    })

    test('forces a tool, and disables all of them', async () => {
      const params = { ...base, messages: [user('Say hello.')], tools: [weather, time] }
      const forced = { ...params, tool_choice: { type: 'tool' as const, name: 'get_weather' } }
      expect(callsOf(await client.messages.create(forced))).toMatchObject([{ name: 'get_weather' }])
      if (kind === 'demo') {
        const none = { ...params, tool_choice: { type: 'none' as const } }
        expect(callsOf(await client.messages.create(none))).toEqual([])
      } else {
        await client.messages.create({ ...params, tool_choice: { type: 'any' } })
        const { tool_choice: sent } = world.asked()
        expect(sent).toEqual(kind === 'messages' ? { type: 'any' } : 'required')
      }
    })

    test.each([false, true])(
      'runs tools with the helper of the package (stream: %p)',
      async (stream) => {
        const cities: string[] = []
        const define = sdk === '0.137' ? (olderBetaTool as unknown as typeof betaTool) : betaTool
        const runnable = define({
          name: 'get_weather',
          description: 'The weather of a city.',
          inputSchema: schema,
          run: ({ city }) => {
            cities.push(String(city))
            return `sunny in ${city}`
          },
        })
        const messages = [user('The weather in Oslo?')]
        const params = { ...base, messages, tools: [runnable], max_iterations: 4 }
        const runner = stream
          ? client.beta.messages.toolRunner({ ...params, stream: true })
          : client.beta.messages.toolRunner(params)
        const message = await runner.runUntilDone()
        expect(cities).toHaveLength(1)
        expect(message.content[0]?.type === 'text' && message.content[0].text).toContain(
          `sunny in ${cities[0]}`,
        )
      },
    )
  },
)
