import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type OpenAI from 'openai'
import { zodResponsesFunction, zodTextFormat } from 'openai/helpers/zod'
import { z } from 'zod'
import { type ClientGateway, kinds, startClientGateway } from '#test/support/client-gateway.ts'

/** Parsing by a zod schema in the `openai` package. */

const answerFormat = zodTextFormat(z.object({ answer: z.number() }), 'answer')
const weather = zodResponsesFunction({
  name: 'get_weather',
  parameters: z.object({ city: z.string() }),
})

describe.each(kinds)('the openai package over a $kind upstream', ({ kind, model, tools }) => {
  let server: ClientGateway
  let client: OpenAI
  beforeAll(async () => {
    server = await startClientGateway(kind)
    client = await server.gateway.openai()
  })
  afterAll(() => server.stop())

  test('parses output', async () => {
    const response = await client.responses.parse({
      model,
      input: 'The answer?',
      text: { format: answerFormat },
    })
    expect(typeof response.output_parsed?.answer).toBe('number')
  })

  test('parses streamed output', async () => {
    const stream = client.responses.stream({
      model,
      input: 'The answer?',
      text: { format: answerFormat },
    })
    const snapshots: string[] = []
    stream.on('response.output_text.delta', ({ snapshot }) => snapshots.push(snapshot))
    const { output_parsed: parsed, output_text: text } = await stream.finalResponse()
    expect(snapshots.at(-1)).toBe(text)
    expect(typeof parsed?.answer).toBe('number')
  })

  test('parses the arguments of a call', async () => {
    const response = await client.responses.parse({
      model: tools,
      input: 'Weather in Oslo?',
      tools: [weather],
    })
    const [call] = response.output.filter((item) => item.type === 'function_call')
    expect(typeof call?.parsed_arguments.city).toBe('string')
  })
})
