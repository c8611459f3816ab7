import { afterEach, expect, test } from 'bun:test'
import { createRouter } from '#inference/routing/router.ts'
import { defaultHealthSettings } from '#inference/routing/settings.ts'
import { eventually } from '#test/support/eventually.ts'
import { makeRequest, makeRequestContext } from '#test/support/generation.ts'
import {
  collect,
  failure,
  start,
  stopUpstreams,
  target,
  texts,
  upstreamThat,
  whole,
} from '#test/support/generations.ts'
import type { ReplayAnswer, ReplayUpstream } from '#test/support/replay-upstream.ts'

/** A second attempt beside the first one, over real sockets. */

afterEach(stopUpstreams)

const silent: ReplayAnswer = { ending: 'silent' }
const shortMs = 30
/** Longer than any output here. */
const longMs = 60_000

async function open(
  answers: readonly ReplayAnswer[],
  given: { retriesPerSecond?: number } = {},
  hedgeMs = shortMs,
) {
  const upstreams = await Promise.all(answers.map((answer) => upstreamThat(answer)))
  const targets = upstreams.map(({ baseUrl }, index) => ({
    ...target(baseUrl, `upstream-${index}`),
    hedgeMs,
  }))
  const settings = { ...defaultHealthSettings, retryShare: 0, ...given }
  const router = createRouter({ settings })
  const started = start({ router, retry: { retriesMax: 0 } })
  const generate = (job: object = {}) =>
    started.inference.generate({
      request: makeRequest(),
      targets,
      context: makeRequestContext(),
      streamed: true,
      ...job,
    })
  const states = targets.map((each) => router.stateOf(each).upstream)
  return { ...started, upstreams, targets, states, generate }
}

const counts = (upstreams: readonly ReplayUpstream[]) =>
  upstreams.map(({ requests }) => requests.length)

test('the first output wins, and the other attempt is aborted and recorded', async () => {
  const { generate, upstreams, records, states } = await open([silent, { body: whole }])
  expect(texts(await collect(generate()))).toBe('one two')
  expect(counts(upstreams)).toEqual([1, 1])
  await upstreams[0]?.until(({ connections }) => connections.aborted === 1)
  expect(records).toMatchObject([
    {
      outcome: 'completed',
      hedged: true,
      retries: 0,
      target: { upstream: { name: 'upstream-1' } },
    },
  ])
  expect(states.map(({ inFlight, waiting }) => [inFlight, waiting.size])).toEqual([
    [0, 0],
    [0, 0],
  ])
  // The time that the loser took at least counts, or it would stay the favourite.
  expect(states[0]?.models.get('upstream-name')?.firstEvent.samples).toBe(1)
})

test('an output in time starts no second attempt', async () => {
  const { generate, upstreams, records } = await open(
    [{ body: whole }, { body: whole }],
    {},
    longMs,
  )
  for (let round = 0; round < 5; round++) await collect(generate())
  expect(counts(upstreams)).toEqual([5, 0])
  expect(records.some(({ hedged }) => hedged)).toBe(false)
})

test('the first attempt wins if its output comes first after all', async () => {
  let answer = () => {}
  const held = new Promise<void>((resolve) => {
    answer = resolve
  })
  const late = { body: whole, cutsAt: [1], nextPiece: () => held }
  const { generate, upstreams, records, states } = await open([late, silent])
  const collected = collect(generate())
  await upstreams[1]?.until(({ requests }) => requests.length === 1)
  answer()
  expect(texts(await collected)).toBe('one two')
  await upstreams[1]?.until(({ connections }) => connections.aborted === 1)
  expect(records).toMatchObject([{ hedged: true, target: { upstream: { name: 'upstream-0' } } }])
  expect(states.map(({ inFlight }) => inFlight)).toEqual([0, 0])
})

test('a failure of one attempt leaves the other one running; of both it ends the call', async () => {
  const broken = { status: 500 }
  const one = await open([{ ...silent }, broken])
  const collected = collect(one.generate())
  await one.upstreams[1]?.until(({ requests }) => requests.length === 1)
  await eventually('the second attempt fails', () => one.states[1]?.inFlight === 0)
  await one.upstreams[0]?.stop()
  const error = await collected.catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ kind: 'upstream_unreachable' })
  expect(one.records).toMatchObject([{ outcome: 'failed', hedged: true }])
  expect(one.states.map(({ inFlight }) => inFlight)).toEqual([0, 0])
})

test('a client that disconnects aborts both', async () => {
  const { generate, upstreams, states } = await open([silent, silent])
  const source = new AbortController()
  const failed = failure(generate({ context: makeRequestContext(source.signal) }))
  await upstreams[1]?.until(({ requests }) => requests.length === 1)
  source.abort()
  expect((await failed).kind).toBe('client_closed')
  for (const each of upstreams) await each.until(({ connections }) => connections.aborted === 1)
  expect(states.map(({ inFlight }) => inFlight)).toEqual([0, 0])
})

test.each([
  ['a request that is not streamed', { streamed: false }],
  [
    'tools that the upstream runs',
    { request: makeRequest({ native: { tools: [], include: [], toolCallsMax: null } }) },
  ],
])('%s has no second attempt', async (_name, job) => {
  const { generate, upstreams } = await open([silent, { body: whole }])
  const source = new AbortController()
  const failed = failure(generate({ ...job, context: makeRequestContext(source.signal) }))
  await upstreams[0]?.until(({ requests }) => requests.length === 1)
  await Bun.sleep(3 * shortMs)
  source.abort()
  await failed
  expect(counts(upstreams)).toEqual([1, 0])
})

test('second attempts stay within the retry budget', async () => {
  const { generate, upstreams } = await open([silent, { body: whole }], { retriesPerSecond: 0 })
  const source = new AbortController()
  const failed = failure(generate({ context: makeRequestContext(source.signal) }))
  await upstreams[0]?.until(({ requests }) => requests.length === 1)
  await Bun.sleep(3 * shortMs)
  source.abort()
  await failed
  expect(counts(upstreams)).toEqual([1, 0])
})
