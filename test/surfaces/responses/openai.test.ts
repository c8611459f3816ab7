import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type OpenAI from 'openai'
import type { ResponseInput, ResponseStreamEvent } from 'openai/resources/responses/responses'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { chatStream } from '#test/support/recordings.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { chatAnswer, chunk, nativeAnswer } from '#test/support/scripted-answers.ts'

/** The `openai` package with each kind of upstream, over real HTTP. */

const weather = {
  type: 'function' as const,
  name: 'get_weather',
  description: 'The weather of a city.',
  strict: false,
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
}

/**
 * The types of the package do not accept its output as input under exact optional property types.
 */
const replay = (items: unknown[]) => items as ResponseInput

const kinds = [
  { kind: 'demo', model: 'demo-fast', tools: 'demo-tools', reasoning: 'demo-reasoning' },
  { kind: 'chat', model: 'm', tools: 'm', reasoning: 'm' },
  { kind: 'responses', model: 'm', tools: 'm', reasoning: 'm' },
] as const

describe.each(kinds)(
  'the openai package over a $kind upstream',
  ({ kind, model, tools, reasoning }) => {
    let upstream: ReplayUpstream
    let gateway: Gateway
    let client: OpenAI

    beforeAll(async () => {
      const answer = kind === 'responses' ? nativeAnswer : chatAnswer
      upstream = await startReplayUpstream(({ path, body }) =>
        path.endsWith('/models')
          ? { headers: { 'content-type': 'application/json' }, body: '{"data":[{"id":"m"}]}' }
          : { body: answer(body) },
      )
      gateway = await startGateway(
        kind === 'demo' ? {} : { upstream: [{ url: upstream.baseUrl, api: kind }] },
      )
      client = await gateway.openai()
    })
    afterAll(async () => {
      await gateway.stop()
      await upstream.stop()
    })

    test('models.list contains the model', async () => {
      const names = await Array.fromAsync(client.models.list(), ({ id }) => id)
      expect(names).toContain(model)
      expect((await client.models.retrieve(model)).object).toBe('model')
    })

    test('create returns text and a complete object', async () => {
      const response = await client.responses.create({ model, input: 'Say hello.' })
      expect(response.status).toBe('completed')
      expect(response.output_text.length).toBeGreaterThan(5)
      expect(response.usage?.output_tokens).toBeGreaterThan(0)
      expect(response.model).toBe(model)
      expect(response.id).toStartWith('resp_')
    })

    test('create with stream returns dense sequence numbers and the text in pieces', async () => {
      const events: ResponseStreamEvent[] = []
      for await (const event of await client.responses.create({
        model,
        input: 'Say hello.',
        stream: true,
      })) {
        events.push(event)
      }
      expect(events.map(({ sequence_number }) => sequence_number)).toEqual(
        events.map((_, at) => at),
      )
      expect(events[0]?.type).toBe('response.created')
      expect(events[1]?.type).toBe('response.in_progress')
      const last = events.at(-1)
      if (last?.type !== 'response.completed') throw new Error(`ended with ${last?.type}`)
      const pieces = events.flatMap((event) =>
        event.type === 'response.output_text.delta' ? [event.delta] : [],
      )
      const [message] = last.response.output
      const text =
        message?.type === 'message' && message.content[0]?.type === 'output_text'
          ? message.content[0].text
          : ''
      expect(pieces.join('')).toBe(text)
      expect(pieces.length).toBeGreaterThan(1)
    })

    test('the strict stream helper accumulates the same response', async () => {
      const stream = client.responses.stream({ model, input: 'Say hello.' })
      const final = await stream.finalResponse()
      expect(final.status).toBe('completed')
      expect(final.output_text.length).toBeGreaterThan(5)
    })

    test('a tool call is returned, and its result is accepted', async () => {
      const stream = client.responses.stream({
        model: tools,
        input: 'Weather in Oslo?',
        tools: [weather],
      })
      const first = await stream.finalResponse()
      const [called] = first.output.filter((item) => item.type === 'function_call')
      if (called === undefined) throw new Error('no call')
      expect(called.name).toBe('get_weather')
      expect(typeof JSON.parse(called.arguments).city).toBe('string')
      const second = await client.responses.create({
        model: tools,
        tools: [weather],
        input: replay([
          { role: 'user', content: 'Weather in Oslo?' },
          ...first.output,
          { type: 'function_call_output', call_id: called.call_id, output: 'sunny' },
        ]),
      })
      expect(second.output_text).toContain('sunny')
    })

    test('parallel calls have unique ids', async () => {
      const response = await client.responses
        .stream({
          model: tools,
          input: 'parallel: weather in Oslo and Rome?',
          tools: kind === 'demo' ? [weather, { ...weather, name: 'get_time' }] : [weather],
        })
        .finalResponse()
      const calls = response.output.filter((item) => item.type === 'function_call')
      expect(calls).toHaveLength(2)
      expect(new Set(calls.map(({ call_id }) => call_id)).size).toBe(2)
      expect(new Set(calls.map(({ id }) => id)).size).toBe(2)
    })

    test('structured output is parsed', async () => {
      const response = await client.responses.parse({
        model,
        input: 'The answer?',
        text: {
          format: {
            type: 'json_schema',
            name: 'answer',
            strict: true,
            schema: {
              type: 'object',
              properties: { answer: { type: 'number' } },
              required: ['answer'],
              additionalProperties: false,
            },
          },
        },
      })
      expect(typeof JSON.parse(response.output_text).answer).toBe('number')
    })

    test('reasoning is returned as a summary, and can be replayed', async () => {
      const response = await client.responses
        .stream({
          model: reasoning,
          input: 'think: is it so?',
          reasoning: { effort: 'low', summary: 'auto' },
        })
        .finalResponse()
      const [thought, message] = response.output
      if (thought?.type !== 'reasoning') throw new Error('no reasoning')
      expect(thought.summary.map(({ text }) => text).join('')).not.toBe('')
      expect(message?.type).toBe('message')
      const next = await client.responses.create({
        model: reasoning,
        input: replay([...response.output, { role: 'user', content: 'Say hello.' }]),
      })
      expect(next.status).toBe('completed')
    })

    test('an unknown model is a 404', async () => {
      const failure = await client.responses
        .create({ model: 'nope', input: 'x' })
        .catch((error) => error)
      expect(failure.status).toBe(404)
      expect(failure.code).toBe('model_not_found')
      expect(failure.requestID).toStartWith('req_')
    })
  },
)

test('aborting a request aborts the stream and the upstream request', async () => {
  const upstream = await startReplayUpstream(({ path }) =>
    path.endsWith('/models')
      ? { headers: { 'content-type': 'application/json' }, body: '{"data":[{"id":"m"}]}' }
      : {
          body: chatStream([chunk({ content: 'one ' })]).replace('data: [DONE]\n\n', ''),
          ending: 'hang',
        },
  )
  const gateway = await startGateway({ upstream: [{ url: upstream.baseUrl }] })
  const client = await gateway.openai()
  const stream = await client.responses.create({
    model: 'm',
    input: 'x',
    stream: true,
    store: false,
  })
  for await (const event of stream) {
    if (event.type === 'response.output_text.delta') stream.controller.abort()
  }
  await upstream.until(({ connections }) => connections.aborted === 1)
  expect(gateway.deps.inference.running()).toBe(0)
  await gateway.stop()
  await upstream.stop()
})
