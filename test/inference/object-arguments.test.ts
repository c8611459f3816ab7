import { afterEach, describe, expect, test } from 'bun:test'
import type { GenerationJob, Inference } from '#inference/inference.ts'
import { withObjectArguments } from '#inference/object-arguments.ts'
import type { Target } from '#inference/upstream.ts'
import { makeRequest, makeRequestContext } from '#test/support/generation.ts'
import {
  collect,
  failure,
  type Overrides,
  start,
  stopUpstreams,
  target,
  upstreamThat,
} from '#test/support/generations.ts'
import { checkEvents } from '#test/support/grammar.ts'
import { chatStream } from '#test/support/recordings.ts'
import { chunk } from '#test/support/scripted-answers.ts'

/** Calls whose arguments are not an object are invalid. */

const hourMs = 3_600_000

afterEach(stopUpstreams)

const call = (index: number, args: string) =>
  chunk({
    tool_calls: [{ index, id: `c${index}`, function: { name: `tool_${index}`, arguments: args } }],
  })
const whole = (...chunks: object[]) => chatStream([...chunks, chunk({}, 'tool_calls')])

const jobAt = (...targets: Target[]) => ({
  request: makeRequest({ model: 'asked-name' }),
  targets,
  context: makeRequestContext(),
})
const runs = {
  'in one generation': ({ generate }: Inference, job: GenerationJob) =>
    generate({ ...job, objectArguments: true }),
  'in a loop of generations': ({ generate }: Inference, job: GenerationJob) =>
    withObjectArguments(generate)(job),
}

describe.each(Object.entries(runs))('%s', (_, generate) => {
  async function run(baseUrl: string, overrides: Overrides = {}) {
    const { inference } = start(overrides)
    return { batches: checkEvents(generate(inference, jobAt(target(baseUrl)))), inference }
  }

  test('a response with object arguments passes unchanged', async () => {
    const body = whole(chunk({ content: 'I look.' }), call(0, '{"a":'), call(0, '1}'), call(1, ''))
    const upstream = await upstreamThat({ body })
    const { batches } = await run(upstream.baseUrl)
    const events = await collect(batches)
    expect(events.at(-1)).toMatchObject({ type: 'finish', reason: 'tool-calls' })
    const pieces = events.flatMap((event) => (event.type === 'tool-call-delta' ? [event.text] : []))
    expect(pieces.join('')).toBe('{"a":1}{}')
  })

  test.each(['{"a": "b', '["a"]', '"a"', 'null', '{"a":1}}'])(
    '%s fails the generation',
    async (args) => {
      const body = whole(chunk({ content: 'I look.' }), call(0, args))
      const upstream = await upstreamThat({ body, cutsAt: [body.indexOf('data:', 1)], pauseMs: 20 })
      const { batches, inference } = await run(upstream.baseUrl)
      const events = await collect(batches)
      const last = events.at(-1)
      expect(last?.type === 'error' && last.error.message).toContain('tool_0')
      expect(last?.type === 'error' && last.error.kind).toBe('upstream_invalid_answer')
      expect(inference.running()).toBe(0)
    },
  )

  test('the upstream request ends before the error is read', async () => {
    const body = chatStream([chunk({ content: 'I look.' }), call(0, '["a"]'), call(1, '{}')])
    const cutsAt = [body.indexOf('data:', 1)]
    const upstream = await upstreamThat({ body, cutsAt, pauseMs: 20, ending: 'hang' })
    const { batches } = await run(upstream.baseUrl, {
      deadlines: { gapMs: hourMs, totalMs: hourMs },
    })
    for await (const batch of batches) {
      if (batch.at(-1)?.type === 'error') {
        await upstream.until(({ connections }) => connections.aborted === 1)
        return
      }
    }
    throw new Error('no error was emitted')
  })

  test('a response in one batch fails before any output', async () => {
    const upstream = await upstreamThat({ body: whole(call(0, '["a"]')) })
    const { batches } = await run(upstream.baseUrl)
    expect((await failure(batches)).kind).toBe('upstream_invalid_answer')
  })

  test('a call truncated by the output limit passes', async () => {
    const body = chatStream([call(0, '{"a": "b'), chunk({}, 'length')])
    const upstream = await upstreamThat({ body })
    const { batches } = await run(upstream.baseUrl)
    expect((await collect(batches)).at(-1)).toMatchObject({ type: 'finish', reason: 'length' })
  })
})

test('a broken call fails, and is not a failure of the upstream', async () => {
  const usage = { prompt_tokens: 3, completion_tokens: 7, total_tokens: 10 }
  const end = [chunk({}, 'tool_calls'), { choices: [], usage }]
  const broken = await upstreamThat({ body: chatStream([call(0, '[]'), ...end]) })
  const other = await upstreamThat({ body: whole(call(0, '{}')) })
  const { inference, records } = start()
  const job = jobAt(target(broken.baseUrl), target(other.baseUrl, 'second'))
  for (let request = 0; request < 20; request++) {
    const run = inference.generate({ ...job, objectArguments: true })
    expect((await failure(run)).kind).toBe('upstream_invalid_answer')
  }
  expect(new Set(records.map(({ outcome }) => outcome))).toEqual(new Set(['failed']))
  // Its usage is that of the upstream.
  expect(new Set(records.map(({ usage }) => usage?.outputTokens))).toEqual(new Set([7]))
  expect(new Set(records.map(({ target }) => target?.upstream.name))).toEqual(new Set(['first']))
})
