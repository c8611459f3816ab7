import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { begun, stopUpstreams, upstreamThat, whole } from '#test/support/generations.ts'
import type { ReplayUpstream } from '#test/support/replay-upstream.ts'
import { openSocket, readTurn, type SocketClient } from '#test/support/socket-client.ts'

/** Frames of clients: valid and invalid, too many, and too long. */

const requestBytesMax = 1_048_576
const turnsQueuedMax = 3
const text = 1
const binary = 2
const pieceOfMany = 0

let upstream: ReplayUpstream
let gateway: Gateway
let token: string

beforeAll(async () => {
  upstream = await upstreamThat({ body: whole })
  gateway = await startGateway({
    upstream: [{ url: upstream.baseUrl, models: ['m'] }],
    limits: { requestBytesMax, jsonDepthMax: 32 },
    websocket: { turnsQueuedMax },
  })
  token = await gateway.token()
})
afterAll(async () => {
  await gateway.stop()
  await stopUpstreams()
})

const open = (headers: Record<string, string> = {}) =>
  openSocket(gateway.port, { headers: { authorization: `Bearer ${token}`, ...headers } })
const request = { model: 'm', input: 'hi', store: false }
const asFrame = (more: object = {}) => ({ type: 'response.create', ...request, ...more })

async function expectServed(client: SocketClient): Promise<void> {
  expect((await client.turn(request)).response).toMatchObject({ status: 'completed' })
}

describe('an error frame, with the connection still open', () => {
  const nested = `{"type":"response.create","input":${'['.repeat(40)}${']'.repeat(40)}}`
  const frames: [what: string, frame: string | Uint8Array, code: string, param: string | null][] = [
    ['invalid JSON', '{"type":', 'malformed_json', null],
    ['nothing', '', 'malformed_json', null],
    ['a number', '123', 'invalid_request', null],
    ['a list', '[]', 'invalid_request', null],
    ['no type', '{"model":"m"}', 'invalid_request', 'type'],
    ['another type', '{"type":"response.destroy"}', 'invalid_request', 'type'],
    ['a type that is not a string', '{"type":{"a":1}}', 'invalid_request', 'type'],
    ['response.cancel', '{"type":"response.cancel","response_id":"x"}', 'invalid_request', 'type'],
    [
      'response.steer without its response',
      '{"type":"response.steer","input":"x"}',
      'invalid_request',
      'previous_response_id',
    ],
    [
      'response.steer without input',
      '{"type":"response.steer","previous_response_id":"resp_1"}',
      'invalid_request',
      'input',
    ],
    ['excessive nesting', nested, 'invalid_request', null],
    [
      'an invalid stream id',
      '{"type":"response.create","stream_id":7}',
      'invalid_stream_id',
      'stream_id',
    ],
    [
      'a long stream id',
      `{"type":"response.create","stream_id":"${'x'.repeat(257)}"}`,
      'invalid_stream_id',
      'stream_id',
    ],
    [
      'an empty stream id',
      '{"type":"response.create","stream_id":""}',
      'invalid_stream_id',
      'stream_id',
    ],
    [
      'a stream id with other characters',
      '{"type":"response.create","stream_id":"a b"}',
      'invalid_stream_id',
      'stream_id',
    ],
    ['no model', '{"type":"response.create","input":"x"}', 'invalid_request', 'model'],
    ['a binary frame', Buffer.from(JSON.stringify(asFrame())), 'invalid_request', null],
  ]

  test.each(frames)('for %s', async (_, frame, code, param) => {
    const client = await open()
    client.sendFrame(typeof frame === 'string' ? text : binary, frame)
    const [answer] = await client.read(1)
    expect(answer).toMatchObject({ type: 'error', status: 400, error: { code, param } })
    await expectServed(client)
    client.socket.destroy()
  })

  test('for each of many', async () => {
    const client = await open()
    const count = 2_000
    for (let sent = 0; sent < count; sent++) client.sendFrame(text, 'nonsense')
    const answers = await client.read(count)
    expect(new Set(answers.map(({ type }) => type))).toEqual(new Set(['error']))
    await expectServed(client)
    client.socket.destroy()
  })
})

test('an acknowledgement is ignored, even in large numbers', async () => {
  const client = await open()
  for (let sent = 0; sent < 5_000; sent++) {
    client.send({ type: 'response.processed', response_id: 'resp_1' })
  }
  await expectServed(client)
  client.socket.destroy()
})

test('a fragmented frame is one frame', async () => {
  const client = await open()
  const [first, ...rest] = JSON.stringify(asFrame()).match(/.{1,7}/g) ?? []
  client.sendFrame(text, first ?? '', 0)
  for (const piece of rest) client.sendFrame(pieceOfMany, piece, 0)
  client.sendFrame(pieceOfMany, '')
  await eventually('it is answered', () => client.texts.at(-1)?.includes('completed') === true)
  expect((await readTurn(client.texts)).response).toMatchObject({ status: 'completed' })
  client.socket.destroy()
})

describe('a frame that is too long closes its connection with 1009', () => {
  test('at once', async () => {
    const client = await open()
    client.sendFrame(text, JSON.stringify(asFrame({ input: 'x'.repeat(requestBytesMax) })))
    await eventually('it is closed', client.isClosed)
    expect(client.closeCode()).toBe(1009)
  })

  test('in pieces', async () => {
    const client = await open()
    const piece = 'x'.repeat(requestBytesMax / 4)
    client.sendFrame(text, piece, 0)
    for (let sent = 0; sent < 4; sent++) client.sendFrame(pieceOfMany, piece, 0)
    await eventually('it is closed', client.isClosed)
    expect(client.closeCode()).toBe(1009)
  })
})

describe('requests of a lane during a running one', () => {
  test('wait, up to the maximum', async () => {
    upstream.answer({ body: begun, ending: 'hang' })
    const client = await open()
    const requestCount = upstream.requests.length
    const sendTurn = (input: string) => client.send(asFrame({ input, stream_id: 'one' }))
    sendTurn('first')
    await upstream.until(({ requests }) => requests.length === requestCount + 1)
    for (let at = 0; at < turnsQueuedMax; at++) sendTurn(`wait ${at}`)
    sendTurn('too many')
    await eventually('one is refused', () =>
      client.texts.some((line) => line.includes('"status":429')),
    )
    const refusal = client.texts.findIndex((line) => line.includes('"status":429'))
    expect(JSON.parse(client.texts[refusal] ?? '')).toMatchObject({
      type: 'error',
      status: 429,
      error: { code: 'rate_limit_exceeded' },
      stream_id: 'one',
    })
    expect(upstream.requests).toHaveLength(requestCount + 1)

    upstream.answer({ body: whole })
    upstream.cut()
    const ends = () => client.texts.filter((line) => /"response\.(completed|failed)"/.test(line))
    await eventually('all are answered', () => ends().length === turnsQueuedMax + 1)
    const inputs = upstream.requests.slice(requestCount).map(({ body }) => {
      const { messages } = JSON.parse(body)
      return messages[0].content
    })
    expect([...new Set(inputs)]).toEqual(['first', 'wait 0', 'wait 1', 'wait 2'])
    let turn: string[] = []
    for (const text of client.texts.toSpliced(refusal, 1)) {
      turn.push(text)
      if (!ends().includes(text)) continue
      await readTurn(turn)
      turn = []
    }
    expect(turn).toEqual([])
    await expectServed(client)
    client.socket.destroy()
  })

  test('are limited to the length of one request', async () => {
    upstream.answer({ body: begun, ending: 'hang' })
    const client = await open()
    const requestCount = upstream.requests.length
    client.send(asFrame())
    await upstream.until(({ requests }) => requests.length === requestCount + 1)
    const long = 'x'.repeat(requestBytesMax * 0.6)
    client.send(asFrame({ input: long }))
    client.send(asFrame({ input: long }))
    await eventually('one is refused', () =>
      client.texts.some((line) => line.includes('"status":429')),
    )
    client.socket.destroy()
    upstream.answer({ body: whole })
    await eventually('all is over', () => gateway.deps.inference.running() === 0)
    expect(upstream.requests).toHaveLength(requestCount + 1)
  })
})
