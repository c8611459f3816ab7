import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type OpenAI from 'openai'
import { zodTextFormat } from 'openai/helpers/zod'
import { z } from 'zod'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { chatStream } from '#test/support/recordings.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { chunk } from '#test/support/scripted-answers.ts'

/** Structured output in the `openai` package. */

const answer = z.object({ city: z.string(), degrees: z.number().int() })
const format = zodTextFormat(answer, 'weather')
const right = '{"city":"Oslo","degrees":7}'

/** What servers return instead. */
const wrongs = {
  words: 'It is 7 degrees in Oslo.',
  'JSON in a fence': `\`\`\`json\n${right}\n\`\`\``,
  'a wrong type': '{"city":"Oslo","degrees":"7"}',
  'a property too many': '{"city":"Oslo","degrees":7,"wind":"calm"}',
  'a property too few': '{"city":"Oslo"}',
  'half of it': '{"city":"Oslo","deg',
}

const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }

const bodies = {
  chat: (text: string) =>
    chatStream([chunk({ content: text }), chunk({}, 'stop'), { choices: [], usage }]),
  responses: (text: string) => {
    const item = { type: 'message', id: 'm', role: 'assistant', content: [] }
    const output = [{ ...item, content: [{ type: 'output_text', text, annotations: [] }] }]
    const counts = { input_tokens: 7, output_tokens: 3, total_tokens: 10 }
    const events = [
      { type: 'response.output_item.added', output_index: 0, item },
      { type: 'response.output_text.delta', output_index: 0, item_id: 'm', delta: text },
      { type: 'response.completed', response: { status: 'completed', output, usage: counts } },
    ]
    return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
  },
}

describe.each(['chat', 'responses'] as const)('over a %s upstream', (api) => {
  let upstream: ReplayUpstream
  let gateway: Gateway
  let client: OpenAI
  let askedBefore = 0

  /** Returns these texts in order, and repeats the last one. */
  const answerWith = (...texts: string[]) => {
    const queue = [...texts]
    askedBefore = upstream.requests.length
    upstream.answer(() => ({
      body: bodies[api]((queue.length > 1 ? queue.shift() : queue[0]) ?? ''),
    }))
  }
  const timesAsked = () => upstream.requests.length - askedBefore
  const ask = { model: 'm', input: 'The weather?', text: { format } }

  beforeAll(async () => {
    upstream = await startReplayUpstream({})
    gateway = await startGateway({ upstream: [{ url: upstream.baseUrl, api, models: ['m'] }] })
    client = await gateway.openai()
  })
  afterAll(async () => {
    await gateway.stop()
    await upstream.stop()
  })

  test('valid output is parsed', async () => {
    answerWith(right)
    const response = await client.responses.parse(ask)
    expect(response.status).toBe('completed')
    expect(response.output_parsed).toEqual({ city: 'Oslo', degrees: 7 })
    expect(timesAsked()).toBe(1)
  })

  test.each(Object.entries(wrongs))('in place of %s there is a second try', async (_, wrong) => {
    for (const store of [true, false]) {
      answerWith(wrong, right)
      const response = await client.responses.parse({ ...ask, store })
      expect(response.status).toBe('completed')
      expect(response.output).toHaveLength(1)
      expect(response.output_parsed).toEqual({ city: 'Oslo', degrees: 7 })
      expect(response.usage?.total_tokens).toBe(20)
      expect(timesAsked()).toBe(2)
    }
  })

  test.each(Object.entries(wrongs))('%s twice is an invalid response', async (_, wrong) => {
    answerWith(wrong, wrong, right)
    const response = await client.responses.create(ask)
    expect(timesAsked()).toBe(2)
    expect<unknown>(response).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'invalid_output' },
      output: [{ status: 'incomplete', content: [{ text: wrong }] }],
      usage: { total_tokens: 20 },
    })
  })

  test.each(Object.entries(wrongs))('%s in a stream is an invalid response', async (_, wrong) => {
    answerWith(wrong)
    const stream = client.responses.stream(ask)
    let streamed = ''
    stream.on('response.output_text.delta', ({ delta }) => {
      streamed += delta
    })
    const response = await stream.finalResponse()
    expect(streamed).toBe(wrong)
    expect<unknown>(response).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'invalid_output' },
      output: [{ status: 'incomplete' }],
    })
  })

  test('valid output of a stream is parsed', async () => {
    answerWith(right)
    const response = await client.responses.stream(ask).finalResponse()
    expect(response.output_parsed).toEqual({ city: 'Oslo', degrees: 7 })
  })

  test('output that must be any object is validated', async () => {
    const json = { model: 'm', input: 'x', text: { format: { type: 'json_object' as const } } }
    answerWith('[1]', '{"anything":1}')
    const response = await client.responses.create(json)
    expect(response.output_text).toBe('{"anything":1}')
    answerWith('[1]')
    expect((await client.responses.create(json)).status).toBe('incomplete')
  })

  test('without a format, text is accepted', async () => {
    answerWith(wrongs.words)
    const response = await client.responses.create({ model: 'm', input: 'x' })
    expect(response.status).toBe('completed')
    expect(timesAsked()).toBe(1)
  })
})

test('the demo conforms to a schema', async () => {
  const gateway = await startGateway()
  const client = await gateway.openai()
  const request = { model: 'demo-fast', input: 'Weather?', text: { format } }
  const whole = await client.responses.parse(request)
  const streamed = await client.responses.stream(request).finalResponse()
  for (const { status, output_parsed } of [whole, streamed]) {
    expect(status).toBe('completed')
    expect(answer.safeParse(output_parsed).success).toBe(true)
  }
  await gateway.stop()
})
