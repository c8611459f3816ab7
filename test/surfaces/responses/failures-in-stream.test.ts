import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { begun, stopUpstreams, upstreamThat } from '#test/support/generations.ts'
import { logOf, readFailure } from '#test/support/refusals.ts'
import type { ReplayAnswer, ReplayUpstream } from '#test/support/replay-upstream.ts'
import { checkStream } from '#test/support/response-frames.ts'
import { chunk } from '#test/support/scripted-answers.ts'

/** Failures after the first output: an event of the stream, or a status if nothing was sent. */

const upstreamKey = 'an-upstream-credential'
const error = { message: 'gone', code: 'ill' }
const lines = (...payloads: object[]) =>
  payloads.map((payload) => `data: ${JSON.stringify(payload)}\n\n`).join('')
const call = {
  tool_calls: [{ index: 0, id: 'a', function: { name: 'get_weather', arguments: '{"ci' } }],
}
const native = lines(
  { type: 'response.created', response: { id: 'x', status: 'in_progress' } },
  {
    type: 'response.output_item.added',
    output_index: 0,
    item: { type: 'message', id: 'm', role: 'assistant', content: [] },
  },
  { type: 'response.output_text.delta', output_index: 0, item_id: 'm', delta: 'one ' },
)

type Case = {
  what: string
  answer: ReplayAnswer
  model?: 'native'
  by?: () => Gateway
  expected: [status: number, code: string]
  /** The stored items, all of them complete except the last. */
  kept?: object[]
}

const text = { type: 'message', status: 'incomplete', content: [{ text: 'one ' }] }

const cases: Case[] = [
  {
    what: 'a body cut off within an event',
    answer: { body: `${begun}data: {"choi`, ending: 'cut' },
    expected: [502, 'server_error'],
  },
  { what: 'no finish reason', answer: { body: begun }, expected: [502, 'server_error'] },
  {
    what: 'an error object',
    answer: { body: begun + lines({ error }) },
    expected: [502, 'ill'],
  },
  {
    what: 'an error event',
    answer: { body: `${begun}event: error\n${lines(error)}` },
    expected: [502, 'ill'],
  },
  {
    what: 'a rate limit',
    answer: { body: begun + lines({ error: { message: 'slow', type: 'rate_limit_error' } }) },
    expected: [429, 'rate_limit_exceeded'],
  },
  {
    what: 'a context overflow',
    answer: { body: begun + lines({ error: { message: 'x', code: 'context_length_exceeded' } }) },
    expected: [400, 'context_length_exceeded'],
  },
  {
    what: 'HTML',
    answer: { body: `${begun}data: <h1>Bad gateway</h1>\n\n` },
    expected: [502, 'upstream_invalid_answer'],
  },
  {
    what: 'silence',
    answer: { body: begun, ending: 'hang' },
    by: () => shortDeadlines,
    expected: [504, 'upstream_gap_timeout'],
  },
  {
    what: 'an end within a call',
    answer: { body: begun + lines(chunk(call)) },
    expected: [502, 'server_error'],
    kept: [
      { type: 'message', status: 'completed', content: [{ text: 'one ' }] },
      { type: 'function_call', status: 'incomplete', call_id: 'a', arguments: '{"ci' },
    ],
  },
  {
    what: 'an end within reasoning',
    answer: { body: lines(chunk({ reasoning_content: 'Hm' })) },
    expected: [502, 'server_error'],
    kept: [{ type: 'reasoning', summary: [{ text: 'Hm' }] }],
  },
  {
    what: 'a failed response of a native upstream',
    answer: {
      body: native + lines({ type: 'response.failed', response: { id: 'x', error } }),
    },
    model: 'native',
    expected: [502, 'ill'],
  },
  {
    what: 'a flat error event of a native upstream',
    answer: { body: native + lines({ type: 'error', ...error }) },
    model: 'native',
    expected: [502, 'ill'],
  },
  {
    what: 'a native upstream without a terminal event',
    answer: { body: native },
    model: 'native',
    expected: [502, 'server_error'],
  },
]

let upstream: ReplayUpstream
let gateway: Gateway
let shortDeadlines: Gateway

beforeAll(async () => {
  upstream = await upstreamThat({})
  const upstreamEntry = { url: upstream.baseUrl, key: upstreamKey }
  const offers = [
    { ...upstreamEntry, models: ['m'] },
    { ...upstreamEntry, api: 'responses' as const, models: ['native'] },
  ]
  gateway = await startGateway({ upstream: offers })
  shortDeadlines = await startGateway({ upstream: offers, deadlines: { gapMs: 50 } })
})
afterAll(async () => {
  for (const started of [gateway, shortDeadlines]) await started.stop()
  await stopUpstreams()
})

const ask = (from: Gateway, model: string, stream: boolean) =>
  from.post('/v1/responses', { model, input: 'x', stream })

describe('after the first output', () => {
  test.each(cases)(
    '$what is an event of the stream',
    async ({ answer, model, by, expected, kept }) => {
      upstream.answer(answer)
      const from = by?.() ?? gateway
      const streamed = await ask(from, model ?? 'm', true)
      expect(streamed.status).toBe(200)
      const wire = await streamed.text()
      const { response } = checkStream(wire)
      expect(response).toMatchObject({
        status: 'failed',
        error: { code: expected[1] },
        usage: null,
        output: kept ?? [text],
      })
      expect(wire).not.toContain(upstreamKey)
      expect(wire).not.toContain('127.0.0.1')
      const requestId = streamed.headers.get('x-request-id') ?? ''
      const ends = logOf(from, requestId)
      expect(ends).toMatchObject([{ outcome: 'failed' }])
      expect(from.deps.inference.running()).toBe(0)
    },
  )

  test.each(cases)(
    '$what is a status without streaming',
    async ({ answer, model, by, expected }) => {
      upstream.answer(answer)
      const from = by?.() ?? gateway
      const before = upstream.requests.length
      const failure = await readFailure(await ask(from, model ?? 'm', false), from)
      expect([failure.status, failure.code]).toEqual(expected)
      expect(failure.seen).not.toContain(upstreamKey)
      expect(upstream.requests.length).toBe(before + 1)
    },
  )

  test('the openai package throws the error of the stream', async () => {
    upstream.answer({ body: begun + lines({ error }) })
    const client = await gateway.openai()
    const stream = client.responses.stream({ model: 'm', input: 'x' })
    const failure: unknown = await stream.finalResponse().catch((thrown: unknown) => thrown)
    expect(failure).toMatchObject({ code: 'ill', message: expect.stringContaining('gone') })
  })
})
