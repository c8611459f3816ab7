import { afterEach, expect, test } from 'bun:test'
import { getEventListeners } from 'node:events'
import { AppError } from '#lib/errors.ts'
import {
  begun,
  collect,
  failure,
  start,
  stopUpstreams,
  target,
  texts,
  upstreamThat,
  whole,
} from '#test/support/generations.ts'

afterEach(stopUpstreams)

test.each([
  ['first_event', { ending: 'silent' as const }, { firstEventMs: 20 }],
  ['first_event', { body: ': waiting\n\n', ending: 'hang' as const }, { firstEventMs: 20 }],
  ['total', { body: ': waiting\n\n', ending: 'hang' as const }, { totalMs: 20 }],
])(
  'the %s deadline before any output is thrown with its own code',
  async (which, answer, deadlines) => {
    const upstream = await upstreamThat(answer)
    const { inference, run } = start({ deadlines })
    const error = await failure(run([target(upstream.baseUrl)]))
    expect([error.wireCode, error.status]).toEqual([`upstream_${which}_timeout`, 504])
    await upstream.until(({ connections }) => connections.open === 0)
    expect(inference.running()).toBe(0)
  },
)

test.each([['gap', { gapMs: 20 }]])(
  'the %s deadline after output is the last event',
  async (which, deadlines) => {
    const upstream = await upstreamThat({ body: begun, ending: 'hang' })
    const events = await collect(start({ deadlines }).run([target(upstream.baseUrl)]))
    expect(events.at(-1)).toMatchObject({
      type: 'error',
      error: { wireCode: `upstream_${which}_timeout` },
    })
    await upstream.until(({ connections }) => connections.open === 0)
  },
)

test('comments of the upstream reset the gap deadline', async () => {
  const body = `${begun}${': alive\n\n'.repeat(10)}${whole.slice(begun.length)}`
  const cutsAt = Array.from({ length: 11 }, (_, at) => begun.length + at * 9)
  const upstream = await upstreamThat({ body, cutsAt, pauseMs: 400 })
  const events = await collect(
    start({ deadlines: { gapMs: 3_000 } }).run([target(upstream.baseUrl)]),
  )
  expect(events.at(-1)?.type).toBe('finish')
})

test.each([
  ['before the head', { ending: 'silent' as const }],
  ['before any output', { body: ': waiting\n\n', ending: 'hang' as const }],
])('a disconnect %s ends the upstream request', async (_name, answer) => {
  const upstream = await upstreamThat(answer)
  const { inference, records, run } = start()
  const caller = new AbortController()
  const failed = failure(run([target(upstream.baseUrl)], { signal: caller.signal }))
  await upstream.until(({ requests }) => requests.length === 1)
  caller.abort()
  expect((await failed).kind).toBe('client_closed')
  await upstream.until(({ connections }) => connections.open === 0)
  expect(upstream.requests).toHaveLength(1)
  expect(inference.running()).toBe(0)
  expect(records).toMatchObject([{ outcome: 'cancelled' }])
})

test('a disconnect during the pause before a retry ends the generation immediately', async () => {
  const upstream = await upstreamThat({ status: 503 })
  const { records, run } = start({ retry: { backoffMs: 60_000 } })
  const caller = new AbortController()
  const failed = failure(run([target(upstream.baseUrl)], { signal: caller.signal }))
  await upstream.until(({ requests }) => requests.length === 1)
  await Bun.sleep(20)
  caller.abort()
  expect((await failed).kind).toBe('client_closed')
  expect(records).toMatchObject([{ outcome: 'cancelled' }])
})

test('a client that stops reading after any batch leaves nothing open', async () => {
  const offsets = [...whole.matchAll(/\n\n/g)].map(({ index }) => index + 2)
  for (let taken = 1; taken <= offsets.length; taken++) {
    const upstream = await upstreamThat({ body: whole, cutsAt: offsets, ending: 'hang' })
    const { inference, records, run } = start()
    let seen = 0
    for await (const _batch of run([target(upstream.baseUrl)])) if (++seen === taken) break
    expect(inference.running()).toBe(0)
    expect(records).toHaveLength(1)
    if (records[0]?.outcome === 'cancelled') {
      await upstream.until(({ connections }) => connections.open === 0)
    }
  }
})

test.each([
  ['the first output', { ending: 'silent' as const }, 0],
  ['the next one', { body: begun, ending: 'hang' as const }, 1],
])('cancelling while waiting for %s ends the generation once', async (_what, answer, taken) => {
  const upstream = await upstreamThat(answer)
  const { inference, records, runUnchecked } = start()
  const caller = new AbortController()
  const batches = runUnchecked([target(upstream.baseUrl)], { signal: caller.signal })
  for (let count = 0; count < taken; count++) await batches.next()
  const waiting = batches.next().catch(() => {})
  await upstream.until(({ connections }) => connections.open === 1)
  await Promise.all([batches.return(), waiting])
  expect((await batches.next()).done).toBe(true)
  await upstream.until(({ connections }) => connections.open === 0)
  expect(inference.running()).toBe(0)
  expect(records.map(({ outcome }) => outcome)).toEqual(['cancelled'])
  expect(getEventListeners(caller.signal, 'abort')).toEqual([])
})

test('a generation beyond the limit is refused with Retry-After, and the slot is released', async () => {
  const upstream = await upstreamThat({ body: begun, ending: 'hang' })
  const { inference, run } = start({ limits: { streamsMax: 1 } })
  const caller = new AbortController()
  const first = run([target(upstream.baseUrl)], { signal: caller.signal })
  await first.next()
  const refused = new AbortController()
  const error = await failure(run([target(upstream.baseUrl)], { signal: refused.signal }))
  expect([error.kind, error.status, error.retryAfterS]).toEqual(['too_many_streams', 503, 1])
  expect(getEventListeners(refused.signal, 'abort')).toEqual([])
  caller.abort()
  await collect(first)
  expect(inference.running()).toBe(0)
})

test('stopAll ends each running stream with the given error', async () => {
  const upstream = await upstreamThat({ body: begun, ending: 'hang' })
  const { inference, run } = start()
  const stream = run([target(upstream.baseUrl)])
  await stream.next()
  inference.stopAll(new AppError('draining', 'The server is shutting down.'))
  expect((await collect(stream)).at(-1)).toMatchObject({
    type: 'error',
    error: { kind: 'draining' },
  })
  // A response with tools runs its model again and again.
  expect(await failure(run([target(upstream.baseUrl)]))).toMatchObject({ kind: 'draining' })
})

test('an endless response fails at the limit', async () => {
  const body = begun.repeat(50)
  const upstream = await upstreamThat({
    body,
    cutsAt: [begun.length],
    pauseMs: 100,
    ending: 'hang',
  })
  const events = await collect(
    start({ limits: { outputCharsMax: 100 } }).run([target(upstream.baseUrl)]),
  )
  expect(texts(events).length).toBeLessThanOrEqual(100)
  expect(events.at(-1)).toMatchObject({ error: { kind: 'upstream_invalid_answer' } })
  await upstream.until(({ connections }) => connections.open === 0)
})

test('a response of exactly the limit is complete', async () => {
  const upstream = await upstreamThat({ body: whole })
  const { length } = texts(await collect(start().run([target(upstream.baseUrl)])))
  const run = (outputCharsMax: number) => {
    const events = start({ limits: { outputCharsMax } }).run([target(upstream.baseUrl)])
    return collect(events).then((collected) => collected.at(-1)?.type)
  }
  expect(await run(length)).toBe('finish')
  // It is thrown, or the last event after a text that arrived before.
  expect(await run(length - 1).catch(() => 'error')).toBe('error')
})
