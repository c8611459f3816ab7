import { afterEach, expect, test } from 'bun:test'
import type { EventBatch, GenerationEvent } from '#inference/events.ts'
import type { GenerationJob } from '#inference/inference.ts'
import { withSingleCall } from '#inference/single-call.ts'
import { makeRequest, makeRequestContext } from '#test/support/generation.ts'
import { collect, start, stopUpstreams, target, upstreamThat } from '#test/support/generations.ts'
import { checkEvents } from '#test/support/grammar.ts'
import { chatStream } from '#test/support/recordings.ts'
import { chunk } from '#test/support/scripted-answers.ts'

/** A request that allows one tool call at a time is answered with no more than one. */

afterEach(stopUpstreams)

const call = (index: number) =>
  chunk({
    tool_calls: [{ index, id: `c${index}`, function: { name: `tool_${index}`, arguments: '{}' } }],
  })
const usage = { choices: [], usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } }
const whole = (...chunks: object[]) => chatStream([...chunks, chunk({}, 'tool_calls'), usage])

test('the second call and later events are dropped, and the upstream request ends', async () => {
  const body = whole(call(0), call(1), call(2)).replace('data: [DONE]\n\n', '')
  const cutsAt = [body.indexOf('data:', body.indexOf('tool_1'))]
  const upstream = await upstreamThat({ body: body.slice(0, cutsAt[0]), ending: 'hang' })
  const { events, running } = await run(upstream.baseUrl)
  expect(namesOf(events)).toEqual(['tool_0'])
  expect(events.at(-1)).toEqual({
    type: 'finish',
    reason: 'tool-calls',
    rawReason: null,
    usage: null,
  })
  await upstream.until(({ connections }) => connections.aborted === 1)
  expect(running).toBe(0)
})

test('the usage is kept if the upstream had reported it', async () => {
  const upstream = await upstreamThat({ body: whole(call(0), call(1)) })
  const { events } = await run(upstream.baseUrl)
  expect(namesOf(events)).toEqual(['tool_0'])
  expect(events.at(-1)).toMatchObject({ reason: 'tool-calls', usage: { totalTokens: 10 } })
})

test('a response with one call passes unchanged', async () => {
  const body = whole(chunk({ content: 'I look.' }), call(0))
  const upstream = await upstreamThat({ body })
  const { inference } = start()
  const job = jobOf(upstream.baseUrl)
  const plain = await collect(inference.generate(job))
  expect((await run(upstream.baseUrl)).events).toEqual(plain)
  expect(plain.at(-1)).toMatchObject({ reason: 'tool-calls', usage: { totalTokens: 10 } })
})

test('relayed frames stay with unchanged batches', async () => {
  const relay = { protocol: 'messages', frames: [], maker: 'm' } as const
  const batchOf = (...events: GenerationEvent[]): EventBatch => Object.assign(events, { relay })
  const toolCall = (block: number): GenerationEvent[] => [
    {
      type: 'tool-call-start',
      block,
      call: { callId: `c${block}`, name: 'n', form: 'function' },
    },
    { type: 'tool-call-end', block, complete: true },
  ]
  const batches = [batchOf({ type: 'generation-start' }, ...toolCall(0)), batchOf(...toolCall(1))]
  const wrapped = withSingleCall(async function* () {
    yield* batches
  })
  const seen = await Array.fromAsync(wrapped(jobOf('http://127.0.0.1:1')))
  expect(seen[0]).toBe(batches[0] ?? [])
  expect(seen[1]?.relay).toBeUndefined()
  expect(seen[1]).toMatchObject([{ type: 'finish' }])
})

test('nothing changes if several calls are allowed, or none is possible', () => {
  const batches = (async function* () {})()
  const wrapped = withSingleCall(() => batches)
  const job = jobOf('http://127.0.0.1:1')
  expect(wrapped({ ...job, request: { ...job.request, parallelToolCalls: true } })).toBe(batches)
  expect(wrapped({ ...job, request: { ...job.request, tools: [] } })).toBe(batches)
  expect(wrapped(job)).not.toBe(batches)
})

function jobOf(baseUrl: string): GenerationJob {
  const tools = ['tool_0', 'tool_1', 'tool_2'].map((name) => ({
    type: 'function' as const,
    name,
    description: null,
    parameters: null,
    strict: null,
  }))
  return {
    request: makeRequest({ tools, parallelToolCalls: false }),
    targets: [target(baseUrl)],
    context: makeRequestContext(),
  }
}

async function run(baseUrl: string) {
  const { inference } = start()
  const events = await collect(checkEvents(withSingleCall(inference.generate)(jobOf(baseUrl))))
  return { events, running: inference.running() }
}

function namesOf(events: readonly GenerationEvent[]): string[] {
  return events.flatMap((event) => (event.type === 'tool-call-start' ? [event.call.name] : []))
}
