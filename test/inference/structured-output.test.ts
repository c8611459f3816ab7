import { afterEach, describe, expect, test } from 'bun:test'
import type { GenerationEvent } from '#inference/events.ts'
import type { GenerationJob } from '#inference/inference.ts'
import type { OutputFormat } from '#inference/request.ts'
import { withCheckedOutput } from '#inference/structured-output.ts'
import { makeRequest, makeRequestContext, mergeDeltas } from '#test/support/generation.ts'
import {
  collect,
  failure,
  json,
  start,
  stopUpstreams,
  target,
  texts,
  upstreamThat,
} from '#test/support/generations.ts'
import { checkEvents } from '#test/support/grammar.ts'
import { chatStream } from '#test/support/recordings.ts'
import type { ReplayAnswer, ReplayUpstream } from '#test/support/replay-upstream.ts'

const answerSchema: OutputFormat = {
  type: 'json-schema',
  name: 'answer',
  description: null,
  schema: {
    type: 'object',
    properties: { answer: { type: 'integer' } },
    required: ['answer'],
    additionalProperties: false,
  },
  strict: true,
}

const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }
const chunk = (delta: object, finish: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason: finish }],
})
const say = (...pieces: string[]): ReplayAnswer => ({
  body: chatStream([
    ...pieces.map((content) => chunk({ content })),
    chunk({}, 'stop'),
    { choices: [], usage },
  ]),
})
const right = say('{"answer":', '42}')
const wrong = say('{"answer":', '"42"}')

afterEach(stopUpstreams)

describe('a buffered response', () => {
  test('in a wrong format is generated again, which only the usage shows', async () => {
    const upstream = await upstreamThat(wrong, right)
    const { events, records } = await run(upstream, { buffered: true })
    expect(texts(events)).toBe('{"answer":42}')
    expect(mergeDeltas(events).map(({ type }) => type)).toEqual([
      'generation-start',
      'text-start',
      'text-delta',
      'text-end',
      'finish',
    ])
    expect(events.at(-1)).toMatchObject({
      reason: 'stop',
      usage: { inputTokens: 14, outputTokens: 6, totalTokens: 20 },
    })
    expect(upstream.requests).toHaveLength(2)
    expect(upstream.requests[1]?.body).toBe(upstream.requests[0]?.body ?? '')
    expect(records.map(({ outcome }) => outcome)).toEqual(['completed', 'completed'])
  })

  test('is generated again once, then reported as invalid output', async () => {
    const upstream = await upstreamThat(wrong, say('Sorry: ', '42'), right)
    const { events } = await run(upstream, { buffered: true })
    expect(upstream.requests).toHaveLength(2)
    expect(texts(events)).toBe('Sorry: 42')
    expectInvalid(events)
    expect(events.at(-1)).toMatchObject({ rawReason: 'stop', usage: { totalTokens: 20 } })
  })

  test('in the right format is not generated again', async () => {
    const upstream = await upstreamThat(right, wrong)
    const { events } = await run(upstream, { buffered: true })
    expect(upstream.requests).toHaveLength(1)
    expect(events.at(-1)).toMatchObject({ reason: 'stop', usage: { totalTokens: 10 } })
  })

  test('fails if the second attempt fails', async () => {
    const upstream = await upstreamThat(wrong, { status: 400, headers: json, body: '{}' })
    const { inference } = start()
    const batches = withCheckedOutput(inference.generate)(job(upstream, { buffered: true }))
    expect((await failure(batches)).kind).toBe('invalid_request')
  })

  test('emits its output when it fails in the middle', async () => {
    const body = String(right.body)
    const cut: ReplayAnswer = { body: body.slice(0, body.indexOf('\n\n') + 2), ending: 'cut' }
    const { events } = await run(await upstreamThat(cut), { buffered: true })
    expect(texts(events)).toBe('{"answer":')
    expect(events.at(-1)).toMatchObject({ type: 'error', error: { kind: 'upstream_truncated' } })
  })

  test('keeps reasoning parts and token probabilities separate', async () => {
    const logprobs = { content: [{ token: '7', logprob: -1, bytes: [55], top_logprobs: [] }] }
    const sure = (content: string) => ({
      choices: [{ index: 0, delta: { content }, logprobs, finish_reason: null }],
    })
    const body = chatStream([sure('{"answer":'), sure('7}'), chunk({}, 'stop')])
    const { sampling } = makeRequest()
    const { events } = await run(await upstreamThat({ body }), {
      buffered: true,
      request: makeRequest({ format: answerSchema, sampling: { ...sampling, topLogprobs: 0 } }),
    })
    expect(events.filter(({ type }) => type === 'text-delta')).toHaveLength(2)
  })
})

describe('a streamed response', () => {
  test('streams, and its end waits for the check', async () => {
    const first = chatStream([chunk({ content: '{"answer":' })]).split('data: [DONE]')[0]
    const upstream = await upstreamThat({ body: first ?? '', ending: 'hang' })
    const { inference } = start()
    const batches = withCheckedOutput(inference.generate)(job(upstream))
    const { value } = await batches.next()
    expect(value?.at(-1)).toMatchObject({ type: 'text-delta', text: '{"answer":' })
    await batches.return()
    await upstream.until(({ connections }) => connections.aborted === 1)
  })

  test('in a wrong format ends incomplete, and is not generated again', async () => {
    const firstEnd = String(wrong.body).indexOf('\n\n') + 2
    const upstream = await upstreamThat({ ...wrong, cutsAt: [firstEnd], pauseMs: 20 }, right)
    const { events } = await run(upstream)
    expect(upstream.requests).toHaveLength(1)
    expect(texts(events)).toBe('{"answer":"42"}')
    expectInvalid(events)
  })

  test('in one batch is generated again', async () => {
    const body = (content: string) =>
      JSON.stringify({ choices: [{ index: 0, message: { content }, finish_reason: 'stop' }] })
    const upstream = await upstreamThat(
      { headers: json, body: body('{}') },
      { headers: json, body: body('{"answer":1}') },
    )
    const { events } = await run(upstream)
    expect(texts(events)).toBe('{"answer":1}')
    expect(upstream.requests).toHaveLength(2)
  })
})

describe('other endings are unchanged', () => {
  const call = {
    tool_calls: [
      { index: 0, id: 'a', type: 'function', function: { name: 'look', arguments: '{}' } },
    ],
  }
  const endings: Record<string, { chunks: object[]; reason: string; complete: boolean }> = {
    'a turn that calls a tool, whatever it says before': {
      chunks: [chunk({ content: 'Let me look.' }), chunk(call), chunk({}, 'tool_calls')],
      reason: 'tool-calls',
      complete: true,
    },
    'a refusal': {
      chunks: [chunk({ refusal: 'I would rather not.' }), chunk({}, 'stop')],
      reason: 'stop',
      complete: true,
    },
    'an answer that was cut off by the output limit': {
      chunks: [chunk({ content: '{"answer":' }), chunk({}, 'length')],
      reason: 'length',
      complete: false,
    },
    'an answer that a filter stopped': {
      chunks: [chunk({ content: 'Well' }), chunk({}, 'content_filter')],
      reason: 'content-filter',
      complete: false,
    },
  }
  for (const [name, { chunks, reason, complete }] of Object.entries(endings)) {
    for (const buffered of [true, false]) {
      test(`${name} (${buffered ? 'whole' : 'streamed'})`, async () => {
        const upstream = await upstreamThat({ body: chatStream(chunks) })
        const { events } = await run(upstream, { buffered: buffered })
        expect(upstream.requests).toHaveLength(1)
        expect(events.at(-1)).toMatchObject({ type: 'finish', reason })
        expect(events.find(({ type }) => type === 'text-end')).toMatchObject({ complete })
      })
    }
  }

  test('a request without an output format passes unchanged', async () => {
    const upstream = await upstreamThat(wrong)
    const { inference } = start()
    const request = makeRequest()
    const given = inference.generate(job(upstream, { request }))
    expect(withCheckedOutput(() => given)(job(upstream, { request }))).toBe(given)
    await given.return()
  })
})

describe('every text of a response must have the format', () => {
  const cases: Record<string, { chunks: object[]; isRight: boolean }> = {
    'reasoning before it does not matter': {
      chunks: [chunk({ reasoning: 'Hm.' }), chunk({ content: '{"answer":1}' })],
      isRight: true,
    },
    'a half before reasoning and a half after it are not one': {
      chunks: [
        chunk({ content: '{"answer":' }),
        chunk({ reasoning: 'Hm.' }),
        chunk({ content: '1}' }),
      ],
      isRight: false,
    },
    'words and then JSON are wrong': {
      chunks: [
        chunk({ content: 'Here it is:' }),
        chunk({ reasoning: 'Hm.' }),
        chunk({ content: '{"answer":1}' }),
      ],
      isRight: false,
    },
    'reasoning without an answer is none': {
      chunks: [chunk({ reasoning: 'I know, but I do not tell.' })],
      isRight: false,
    },
  }
  for (const [name, { chunks, isRight }] of Object.entries(cases)) {
    test(name, async () => {
      const body = chatStream([...chunks, chunk({}, 'stop')])
      const { events } = await run(await upstreamThat({ body }))
      expect(events.at(-1)).toMatchObject({ reason: isRight ? 'stop' : 'invalid-output' })
    })
  }
})

type Given = Partial<Pick<GenerationJob, 'buffered' | 'request'>>

function job(upstream: ReplayUpstream, given: Given = {}): GenerationJob {
  return {
    request: makeRequest({ format: answerSchema }),
    targets: [target(upstream.baseUrl)],
    context: makeRequestContext(),
    ...given,
  }
}

async function run(upstream: ReplayUpstream, given: Given = {}) {
  const { inference, records } = start()
  const batches = withCheckedOutput(inference.generate)(job(upstream, given))
  return { events: await collect(checkEvents(batches)), records }
}

function expectInvalid(events: readonly GenerationEvent[]): void {
  expect(events.at(-2)).toMatchObject({ type: 'text-end', complete: false })
  expect(events.at(-1)).toMatchObject({ type: 'finish', reason: 'invalid-output' })
}
