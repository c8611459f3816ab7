import { afterEach, expect, test } from 'bun:test'
import { withObjectArguments } from '#inference/object-arguments.ts'
import { makeRequest, makeRequestContext } from '#test/support/generation.ts'
import {
  collect,
  failure,
  start,
  stopUpstreams,
  target,
  upstreamThat,
} from '#test/support/generations.ts'
import { checkEvents } from '#test/support/grammar.ts'
import { chatStream } from '#test/support/recordings.ts'
import { chunk } from '#test/support/scripted-answers.ts'

/** Calls whose arguments are not an object are invalid. */

afterEach(stopUpstreams)

const call = (index: number, args: string) =>
  chunk({
    tool_calls: [{ index, id: `c${index}`, function: { name: `tool_${index}`, arguments: args } }],
  })
const whole = (...chunks: object[]) => chatStream([...chunks, chunk({}, 'tool_calls')])

async function run(baseUrl: string) {
  const { inference } = start()
  const generate = withObjectArguments(inference.generate)
  const job = {
    request: makeRequest({ model: 'asked-name' }),
    targets: [target(baseUrl)],
    context: makeRequestContext(),
  }
  return { batches: checkEvents(generate(job)), inference }
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
