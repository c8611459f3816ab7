import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { buildApp } from '#app.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { begun, stopUpstreams, upstreamThat, whole } from '#test/support/generations.ts'
import { heldBytesMax } from '#test/support/held-bytes.ts'
import { sendRaw } from '#test/support/raw-client.ts'
import { chatStream } from '#test/support/recordings.ts'
import type { ReplayAnswer, ReplayUpstream } from '#test/support/replay-upstream.ts'
import { contentOfResponse } from '#test/support/response-content.ts'
import { checkStream } from '#test/support/response-frames.ts'
import { chunk } from '#test/support/scripted-answers.ts'

/** Clients that disconnect, that do not read, and many at once. */

const streamsAtOnce = 300

let upstream: ReplayUpstream
let gateway: Gateway
/** Disconnects a client that stalls for 200 ms. */
let strict: Gateway
let token: string

beforeAll(async () => {
  upstream = await upstreamThat({})
  const upstreamEntries = [{ url: upstream.baseUrl, models: ['m'] }]
  // More than the kernel buffers for a stalled client, so that the gateway slows down the upstream.
  const limits = { outputCharsMax: 100_000_000 }
  gateway = await startGateway({ upstream: upstreamEntries, limits })
  strict = await startGateway({ upstream: upstreamEntries, limits, stream: { readerStallMs: 200 } })
  token = await gateway.token()
})
afterAll(async () => {
  await gateway.stop()
  await strict.stop()
  await stopUpstreams()
})

/** Not stored, so that the generation depends on its client. */
const question = (stream: boolean) => ({ model: 'm', input: 'x', stream, store: false })
const ask = (stream: boolean) => sendRaw({ port: gateway.port, token, body: question(stream) })
const running = () => gateway.deps.inference.running()
const endings = (of: Gateway, outcome: string) =>
  of.logLines.filter((line) => line.includes(`"outcome":"${outcome}"`)).length

describe('a client that disconnects', () => {
  const answers: [when: string, answer: ReplayAnswer][] = [
    ['before the response head of the upstream', { ending: 'silent' }],
    ['before the first event', { body: ': wait\n\n', ending: 'hang' }],
    ['in the middle', { body: begun, ending: 'hang' }],
    ['while the upstream sends continuously', { body: begun.repeat(100_000), ending: 'hang' }],
  ]

  test.each(
    answers.flatMap(([when, answer]) => [true, false].map((stream) => ({ when, stream, answer }))),
  )('$when (stream: $stream) takes the upstream with it', async ({ stream, answer }) => {
    upstream.answer(answer)
    const [asked, cancelled] = [upstream.requests.length, endings(gateway, 'cancelled')]
    const client = ask(stream)
    await upstream.until(({ requests }) => requests.length === asked + 1)
    if (stream && answer.body === begun) {
      await eventually('the answer has begun', () => client.bytesReceived() > 0)
    }
    client.socket.destroy()
    await upstream.until(({ connections }) => connections.open === 0)
    await eventually('the generation is over', () => running() === 0)
    expect(endings(gateway, 'cancelled')).toBe(cancelled + 1)
    expect(upstream.requests).toHaveLength(asked + 1)
    await expect(client.body()).rejects.toThrow()
  })

  test('between two attempts ends them', async () => {
    const patient = await startGateway({
      upstream: [{ url: upstream.baseUrl, models: ['m'] }],
      retry: { backoffMs: 60_000 },
    })
    upstream.answer({ status: 500 })
    const requestCount = upstream.requests.length
    const client = sendRaw({ port: patient.port, token, body: question(false) })
    await eventually('a try has failed', () => upstream.requests.length === requestCount + 1)
    await Bun.sleep(20)
    client.socket.destroy()
    await eventually('it is over', () => patient.deps.inference.running() === 0)
    expect(endings(patient, 'cancelled')).toBe(1)
    await patient.stop()
  })
})

describe('a client that stalls', () => {
  const pieces = 700
  const deltas = Array.from({ length: pieces }, () => chunk({ content: 'x'.repeat(65_536) }))
  const body = chatStream([...deltas, chunk({}, 'stop')])
  const cutsAt = [...body.matchAll(/\n\n/g)].map(({ index }) => index + 2)
  const long = { body, cutsAt }

  /** Resolves with the number of bytes once the upstream sends no more. */
  async function standstill(): Promise<number> {
    const before = upstream.bodyBytesSent()
    for (let sent = -1; ; ) {
      const now = upstream.bodyBytesSent()
      if (now === sent && now > before) return now - before
      sent = now
      await Bun.sleep(250)
    }
  }

  test('slows down its upstream, and no other client', async () => {
    upstream.answer(long)
    const stalled = sendRaw({ port: gateway.port, token, body: question(true) }, true)
    expect(await standstill()).toBeLessThan(heldBytesMax)
    expect(running()).toBe(1)

    upstream.answer({ body: whole })
    for (let others = 0; others < 20; others++) {
      const { response } = checkStream(await ask(true).body())
      expect(contentOfResponse(response).text).toBe('one two')
    }

    stalled.socket.resume()
    const { response } = checkStream(await stalled.body())
    expect(contentOfResponse(response).text.length).toBe(pieces * 65_536)
    expect(running()).toBe(0)
  })

  test('is disconnected after the stall deadline, as is its upstream', async () => {
    upstream.answer(long)
    const stalled = sendRaw({ port: strict.port, token, body: question(true) }, true)
    await eventually('it is given up', () => endings(strict, 'cancelled') === 1)
    await upstream.until(({ connections }) => connections.open === 0)
    expect(strict.deps.inference.running()).toBe(0)
    stalled.socket.resume()
    await expect(stalled.body()).rejects.toThrow()
  })
})

test('an unread response ends when its client disconnects', async () => {
  upstream.answer({ body: begun, ending: 'hang' })
  const cancelled = endings(gateway, 'cancelled')
  const caller = new AbortController()
  const answer = await buildApp(gateway.deps).handle(
    new Request('http://localhost/v1/responses', {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify(question(true)),
      signal: caller.signal,
    }),
  )
  expect(answer.status).toBe(200)
  expect(running()).toBe(1)
  caller.abort()
  await eventually('it is settled', () => endings(gateway, 'cancelled') === cancelled + 1)
  expect(running()).toBe(0)
})

describe(`${streamsAtOnce} concurrent streams`, () => {
  const requestMany = () => Array.from({ length: streamsAtOnce }, () => ask(true))

  test('all complete', async () => {
    upstream.answer({ body: whole, cutsAt: [begun.length], pauseMs: 20 })
    for (const { body } of requestMany()) {
      const { response } = checkStream(await body())
      expect(contentOfResponse(response).text).toBe('one two')
    }
    expect(running()).toBe(0)
  })

  test('all report a failure of their upstream', async () => {
    const requestCount = upstream.requests.length
    upstream.answer({ body: begun, ending: 'hang' })
    const clients = requestMany()
    await upstream.until(({ requests }) => requests.length === requestCount + streamsAtOnce)
    await eventually('all have begun', () => clients.every((client) => client.bytesReceived() > 0))
    expect(running()).toBe(streamsAtOnce)
    upstream.cut()
    const ids = new Set<unknown>()
    for (const { body } of clients) {
      const { response } = checkStream(await body())
      expect(response).toMatchObject({ status: 'failed', error: { code: 'server_error' } })
      ids.add(response['id'])
    }
    expect(ids.size).toBe(streamsAtOnce)
    expect(running()).toBe(0)
  })

  test('are all released when their clients disconnect together', async () => {
    const requestCount = upstream.requests.length
    upstream.answer({ body: begun, ending: 'hang' })
    const clients = requestMany()
    await upstream.until(({ requests }) => requests.length === requestCount + streamsAtOnce)
    for (const { socket } of clients) socket.destroy()
    await upstream.until(({ connections }) => connections.open === 0)
    await eventually('all are over', () => running() === 0)
  })

  test('are limited by the configured maximum', async () => {
    const small = await startGateway({
      upstream: [{ url: upstream.baseUrl, models: ['m'] }],
      limits: { streamsMax: 2 },
    })
    upstream.answer({ body: begun, ending: 'hang' })
    const held = [0, 1].map(() => sendRaw({ port: small.port, token, body: question(true) }))
    await eventually('two are open', () => held.every((client) => client.bytesReceived() > 0))
    const refused = await small.post('/v1/responses', question(true))
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await refused.json()).toMatchObject({ error: { code: 'too_many_streams' } })
    for (const { socket } of held) socket.destroy()
    await eventually('there is room again', () => small.deps.inference.running() === 0)
    upstream.answer({ body: whole })
    expect((await small.post('/v1/responses', question(true))).status).toBe(200)
    await small.stop()
  })
})
