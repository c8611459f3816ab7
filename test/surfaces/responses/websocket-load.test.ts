import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { begun, stopUpstreams, upstreamThat, whole } from '#test/support/generations.ts'
import { heldBytesMax } from '#test/support/held-bytes.ts'
import { chatStream } from '#test/support/recordings.ts'
import type { ReplayAnswer, ReplayUpstream } from '#test/support/replay-upstream.ts'
import { chunk } from '#test/support/scripted-answers.ts'
import { openSocket } from '#test/support/socket-client.ts'

/** WebSockets that disconnect, that do not read, and many at once. */

const socketsAtOnce = 200

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

const open = ({ port }: Gateway = gateway) =>
  openSocket(port, { headers: { authorization: `Bearer ${token}` } })
const request = { type: 'response.create', model: 'm', input: 'x', store: false }
const running = () => gateway.deps.inference.running()
const endings = (of: Gateway, outcome: string) =>
  of.logLines.filter((line) => line.includes(`"outcome":"${outcome}"`)).length

async function expectNothingOpen(of: Gateway = gateway): Promise<void> {
  await upstream.until(({ connections }) => connections.open === 0)
  await eventually('nothing runs', () => of.deps.inference.running() === 0)
  await eventually('no socket is open', () => of.deps.sockets.count() === 0)
}

describe('a WebSocket that disconnects', () => {
  test('at any event aborts its generation', async () => {
    upstream.answer({ body: whole })
    const client = await open()
    client.send(request)
    await eventually('the turn is over', () => client.texts.at(-1)?.includes('completed') === true)
    const eventCount = client.texts.length
    client.socket.destroy()

    const cutsAt = [...whole.matchAll(/\n\n/g)].map(({ index }) => index + 2)
    // The response has ended with its last event and cannot be aborted.
    for (let events = 0; events < eventCount - 1; events++) {
      upstream.answer({ body: whole.replace('data: [DONE]\n\n', ''), cutsAt, ending: 'hang' })
      const [asked, over] = [upstream.requests.length, endings(gateway, 'cancelled')]
      const leaving = await open()
      leaving.send(request)
      await upstream.until(({ requests }) => requests.length === asked + 1)
      await leaving.read(Math.min(events, eventCount - 4))
      leaving.socket.destroy()
      await expectNothingOpen()
      expect(endings(gateway, 'cancelled') - over).toBeLessThanOrEqual(1)
    }
  })

  const moments: [when: string, answer: ReplayAnswer][] = [
    ['before the response head of the upstream', { ending: 'silent' }],
    ['before the first event', { body: ': wait\n\n', ending: 'hang' }],
    ['while the upstream sends continuously', { body: begun.repeat(50_000), ending: 'hang' }],
  ]

  test.each(moments)('%s aborts its generation and the waiting requests', async (_, answer) => {
    upstream.answer(answer)
    const [asked, cancelled] = [upstream.requests.length, endings(gateway, 'cancelled')]
    const client = await open()
    client.send(request)
    client.send(request)
    await upstream.until(({ requests }) => requests.length === asked + 1)
    client.socket.resetAndDestroy()
    await expectNothingOpen()
    expect(endings(gateway, 'cancelled')).toBe(cancelled + 1)
    expect(upstream.requests).toHaveLength(asked + 1)
  })

  test('leaves a stored response running', async () => {
    upstream.answer({ body: begun, ending: 'hang' })
    const client = await open()
    client.send({ ...request, store: true })
    await eventually('it has begun', () => client.texts.length > 0)
    const { id } = JSON.parse(client.texts[0] ?? '').response
    client.socket.destroy()
    await eventually('the socket is gone', () => gateway.deps.sockets.count() === 0)
    const found = async () => Object(await (await gateway.request(`/v1/responses/${id}`)).json())
    expect(await found()).toMatchObject({ id, status: 'in_progress' })
    expect(running()).toBe(1)
    await gateway.request(`/v1/responses/${id}/cancel`, { method: 'POST' })
    expect(await found()).toMatchObject({ status: 'cancelled' })
    await expectNothingOpen()
  })
})

describe('a WebSocket client that stalls', () => {
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

  test('slows down its upstream, and loses nothing', async () => {
    upstream.answer(long)
    const stalled = await open()
    stalled.socket.pause()
    stalled.send(request)
    expect(await standstill()).toBeLessThan(heldBytesMax)
    expect(running()).toBe(1)
    // Refusals in the meantime have to wait as well.
    for (let sent = 0; sent < 5; sent++) stalled.send({ type: 'nonsense' })

    upstream.answer({ body: whole })
    const other = await open()
    expect((await other.turn(request)).response).toMatchObject({ status: 'completed' })
    other.socket.destroy()

    stalled.socket.resume()
    const isOver = () => stalled.texts.at(-1)?.startsWith('{"type":"response.completed"') === true
    await eventually('it is over', isOver)
    const isRefusal = (text: string) => text.startsWith('{"type":"error"')
    expect(stalled.texts.filter(isRefusal)).toHaveLength(5)
    const events = stalled.texts.filter((text) => !isRefusal(text)).map((text) => JSON.parse(text))
    expect(events.map((event) => event.sequence_number)).toEqual([...events.keys()])
    expect(events.filter(({ type }) => type.endsWith('text.delta'))).toHaveLength(pieces)
    const [message] = events.at(-1).response.output
    expect(message.content[0].text).toHaveLength(pieces * 65_536)
    stalled.socket.destroy()
    await eventually('it has left', () => gateway.deps.sockets.count() === 0)
  })

  test('is disconnected after the stall deadline, as is its upstream', async () => {
    upstream.answer(long)
    const stalled = await open(strict)
    stalled.socket.pause()
    stalled.send(request)
    await eventually('it is given up', () => endings(strict, 'cancelled') === 1)
    await expectNothingOpen(strict)
    stalled.socket.destroy()
  })

  test('and floods the server is disconnected too, without any request', async () => {
    const flooding = await open(strict)
    flooding.socket.pause()
    let sentAll = 0
    const flood = () => {
      for (let sent = 0; sent < 1_000; sent++) flooding.sendFrame(1, 'nonsense')
      sentAll += 1_000
    }
    await eventually('it is cut off', () => {
      if (sentAll < 200_000) flood()
      return strict.deps.sockets.count() === 0
    })
    flooding.socket.destroy()
  })
})

describe(`${socketsAtOnce} concurrent WebSockets`, () => {
  const openMany = () => Promise.all(Array.from({ length: socketsAtOnce }, () => open()))

  test('all complete two requests with their own histories', async () => {
    upstream.answer({ body: whole, cutsAt: [begun.length], pauseMs: 20 })
    const clients = await openMany()
    const first = await Promise.all(clients.map((client) => client.turn(request)))
    const ids = first.map(({ response }) => response?.['id'])
    expect(new Set(ids).size).toBe(socketsAtOnce)
    const second = await Promise.all(
      clients.map((client, at) => client.turn({ ...request, previous_response_id: ids[at] })),
    )
    for (const { response } of second) expect(response).toMatchObject({ status: 'completed' })
    for (const { socket } of clients) socket.destroy()
    await eventually('all have left', () => gateway.deps.sockets.count() === 0)
  })

  test('are all released when they disconnect together', async () => {
    const requestCount = upstream.requests.length
    upstream.answer({ body: begun, ending: 'hang' })
    const clients = await openMany()
    for (const client of clients) client.send(request)
    await upstream.until(({ requests }) => requests.length === requestCount + socketsAtOnce)
    expect(gateway.deps.sockets.busy()).toBe(socketsAtOnce)
    for (const { socket } of clients) socket.destroy()
    await expectNothingOpen()
  })
})
