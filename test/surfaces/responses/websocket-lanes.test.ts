import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { begun, stopUpstreams, upstreamThat, whole } from '#test/support/generations.ts'
import type { ReplayAnswer, ReplayUpstream } from '#test/support/replay-upstream.ts'
import { openSocket, type SocketClient } from '#test/support/socket-client.ts'
import { chatPrompt, checkSocketLog } from '#test/support/socket-log.ts'

/** Several streams on one WebSocket. */

let upstream: ReplayUpstream
let gateway: Gateway
/** With one response at a time. */
let narrow: Gateway
let token: string
const clients: SocketClient[] = []

beforeAll(async () => {
  upstream = await upstreamThat({ body: whole })
  const options = { upstream: [{ url: upstream.baseUrl, models: ['m'] }] }
  gateway = await startGateway({
    ...options,
    websocket: { recheckMs: 50 },
  })
  narrow = await startGateway({ ...options, websocket: { activeMax: 1 } })
  token = await gateway.token()
})
afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.destroy()
  upstream.answer({ body: whole })
  await eventually('nothing runs', () => gateway.deps.inference.running() === 0)
})
afterAll(async () => {
  await gateway.stop()
  await narrow.stop()
  await stopUpstreams()
})

async function open({ port }: Gateway = gateway, headers = {}): Promise<SocketClient> {
  const client = await openSocket(port, {
    headers: { authorization: `Bearer ${token}`, ...headers },
  })
  clients.push(client)
  return client
}

const create = (stream: string | null, more: object = {}) => ({
  type: 'response.create',
  model: 'm',
  input: stream ?? 'default',
  store: false,
  ...(stream === null ? {} : { stream_id: stream }),
  ...more,
})
const ends = (client: SocketClient) =>
  client.texts
    .map((text) => JSON.parse(text))
    .filter(({ type }) => /^response\.(completed|incomplete|failed)$/.test(type))
const byInput = (answers: Record<string, ReplayAnswer>) =>
  upstream.answer(({ body }) => answers[chatPrompt(body).at(-1) ?? ''] ?? { body: whole })
const hanging: ReplayAnswer = { body: begun, ending: 'hang' }

test('16 streams run at the same time; further ones wait for one of them', async () => {
  upstream.answer(hanging)
  const client = await open()
  const before = upstream.requests.length
  client.send(create(null))
  for (let at = 1; at < 18; at++) client.send(create(`lane-${at}`))
  await client.arrived()
  await upstream.until(({ requests }) => requests.length === before + 16)
  expect(gateway.deps.inference.running()).toBe(16)
  await eventually('all have begun', () => client.texts.length >= 16 * 4)
  upstream.answer({ body: whole })
  upstream.cut()
  await eventually('all have ended', () => ends(client).length === 18)
  const { responses, refusals } = await checkSocketLog(client.texts)
  expect(refusals).toEqual([])
  expect(responses.filter(({ response }) => response?.['status'] === 'failed')).toHaveLength(16)
  expect(new Set(responses.map(({ streamId }) => streamId)).size).toBe(18)
})

test('a stream does not wait for another, and its own requests keep their order', async () => {
  byInput({ 'user: slow': hanging })
  const client = await open()
  client.send(create('slow'))
  for (const input of ['one', 'two', 'three']) client.send(create('quick', { input }))
  await eventually('the quick one is done', () => ends(client).length === 3)
  expect(upstream.requests.slice(-3).map(({ body }) => chatPrompt(body).at(-1))).toEqual([
    'user: one',
    'user: two',
    'user: three',
  ])
  const { responses } = await checkSocketLog(client.texts)
  expect(responses.map(({ response }) => response?.['status'])).toEqual([
    'completed',
    'completed',
    'completed',
    undefined,
  ])
})

test('a stream with many requests does not delay another', async () => {
  const client = await open(narrow)
  const before = upstream.requests.length
  const sent = Promise.withResolvers<void>()
  byInput({
    'user: a1': { body: whole, cutsAt: [begun.length], nextPiece: () => sent.promise },
  })
  for (const input of ['a1', 'a2', 'a3', 'a4']) client.send(create('a', { input }))
  client.send(create('b', { input: 'b1' }))
  client.send(create(null, { input: 'd1' }))
  await client.arrived()
  sent.resolve()
  await eventually('all have ended', () => ends(client).length === 6)
  const order = upstream.requests.slice(before).map(({ body }) => chatPrompt(body).at(-1))
  expect(order).toEqual(['user: a1', 'user: b1', 'user: d1', 'user: a2', 'user: a3', 'user: a4'])
  await checkSocketLog(client.texts)
})

test('a connection has 32 names of streams, besides the default one', async () => {
  const client = await open()
  for (let at = 0; at < 32; at++) {
    client.send(create(`s${at}`, { model: 'none' }))
  }
  client.send(create('s32'))
  client.send(create(null))
  client.send(create('s0'))
  await eventually('two are answered', () => ends(client).length >= 2)
  const { refusals, responses } = await checkSocketLog(client.texts)
  expect(refusals.filter(({ status }) => status === 404)).toHaveLength(32)
  expect(refusals.filter(({ status }) => status === 400)).toMatchObject([
    {
      stream_id: 's32',
      error: { code: 'websocket_stream_limit_reached', param: 'stream_id' },
    },
  ])
  expect(responses.map(({ streamId }) => streamId)).toEqual([null, 's0'])
})

test('a failed fork leaves its origin as it is; both branches go on', async () => {
  const client = await open()
  const first = await client.turn(create('main'))
  const next = { previous_response_id: first.response?.['id'] }
  const failed = await client.turn(create('fork', { ...next, model: 'none' }))
  expect(failed.failure).toMatchObject({ status: 404 })
  const [from] = [client.texts.length]
  client.send(create('fork', next))
  client.send(create('main', next))
  const isRefusal = (text: string) => text.startsWith('{"type":"error","status"')
  const refusedBefore = client.texts.filter(isRefusal).length
  const answered = () => ends(client).length + client.texts.filter(isRefusal).length
  await eventually('both have ended', () => answered() >= 3 + refusedBefore)
  const { responses } = await checkSocketLog(client.texts.slice(from))
  expect(responses.map(({ response }) => response?.['previous_response_id'])).toEqual([
    first.response?.['id'],
    first.response?.['id'],
  ])
})

describe('every request of a stream is one request of its own', () => {
  test('with its id, log line, limits and usage', async () => {
    const limits = { requests_per_minute: 3 }
    const made = await gateway.post('/v1/api-keys', { name: 'lanes', limits })
    const { id, key } = Object(await made.json())
    const client = await open(gateway, { authorization: `Bearer ${key}` })
    const lines = gateway.logLines.length
    for (const stream of ['a', 'b', 'c', 'd']) client.send(create(stream))
    await eventually('three are answered', () => ends(client).length === 3)
    const { refusals } = await checkSocketLog(client.texts)
    expect(refusals).toMatchObject([{ status: 429, stream_id: expect.any(String) }])
    const logged = () =>
      gateway.logLines
        .slice(lines)
        .map((line) => JSON.parse(line))
        .filter((line) => line.user_id !== undefined && line.model === 'm')
    await eventually('three have lines', () => logged().length >= 3)
    expect(new Set(logged().map((line) => line.request_id)).size).toBe(logged().length)
    await eventually('the records are written', async () => {
      const usage = await gateway.request(`/v1/usage?group_by=key&key=${id}`)
      return Object(await usage.json()).data[0]?.requests === 3
    })
  })

  test('and all end when their key is revoked', async () => {
    upstream.answer(hanging)
    const made = await gateway.post('/v1/api-keys', { name: 'lanes' })
    const { id, key } = Object(await made.json())
    const client = await open(gateway, { authorization: `Bearer ${key}` })
    const before = upstream.requests.length
    const { aborted } = upstream.connections
    for (const stream of ['a', 'b', 'c']) client.send(create(stream))
    client.send(create('a', { input: 'waits' }))
    await upstream.until(({ requests }) => requests.length === before + 3)
    await gateway.request(`/v1/api-keys/${id}`, { method: 'DELETE' })
    await eventually('it is closed', client.isClosed)
    expect(client.closeCode()).toBe(1008)
    await upstream.until(({ connections }) => connections.aborted === aborted + 3)
    expect(upstream.requests).toHaveLength(before + 3)
    const refused = client.texts.map((text) => JSON.parse(text)).filter((event) => event.status)
    expect(refused).toMatchObject([{ stream_id: 'a', error: { code: 'invalid_api_key' } }])
  })
})
