import { afterEach, describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { openSocket as openRawSocket } from '#test/support/raw-exchange.ts'
import { openSocket } from '#test/support/socket-client.ts'

let gateway: Gateway | undefined
afterEach(async () => {
  await gateway?.stop()
  gateway = undefined
})

async function start(environment: Record<string, string> = {}): Promise<Gateway> {
  gateway = await startGateway({ environment })
  return gateway
}

function linesOf({ logLines }: Gateway): JsonObject[] {
  return logLines
    .map((line): JsonObject => JSON.parse(line))
    .filter(({ message }) => /^(request|generation|speech)/.test(String(message)))
}

const completed = { status: 200, outcome: 'completed', route: '/v1/responses' }

test.each([
  { stream: false, store: false },
  { stream: true, store: false },
  { stream: true, store: true },
  { stream: false, store: true },
])('a response has one line with its generation: %o', async (fields) => {
  const here = await start()
  const body = JSON.stringify({ model: 'demo-fast', input: 'Hi.', ...fields })
  const response = await here.request('/v1/responses', { method: 'POST', body })
  const text = await response.text()
  await eventually('the line is written', () => linesOf(here).length > 0)
  const [line, ...others] = linesOf(here)
  expect(others).toEqual([])
  expect(line).toMatchObject({
    ...completed,
    level: 'info',
    message: 'request ended',
    request_id: response.headers.get('x-request-id'),
    method: 'POST',
    model: 'demo-fast',
    upstream: 'demo',
    user_id: expect.any(String),
    client: '127.0.0.1',
    input_tokens: expect.any(Number),
    output_tokens: expect.any(Number),
    first_event_ms: expect.any(Number),
    duration_ms: expect.any(Number),
    bytes_in: body.length,
    bytes_out: Buffer.byteLength(text),
  })
  expect(line).not.toContainAnyKeys(['path', 'kind', 'cause'])
})

test('errors, unknown paths and wrong methods have one line, without the query', async () => {
  const here = await start()
  const id = crypto.randomUUID()
  await here.request('/v1/nothing?token=a-secret')
  await here.request('/v1/models?token=a-secret', { method: 'POST' })
  await here.request(`/v1/files/${id}`)
  await here.request('/v1/models', { headers: { authorization: 'Bearer wrong' } })
  await here.post('/v1/responses', { model: 'demo-fail', input: 'x' })
  const lines = linesOf(here)
  const facts = lines.map(({ status, outcome, level, route, path, kind }) => ({
    status,
    outcome,
    level,
    route,
    path,
    kind,
  }))
  const refused = { outcome: 'refused', level: 'info' }
  expect(facts).toEqual([
    { ...refused, status: 404, route: undefined, path: '/v1/nothing', kind: 'not_found' },
    { ...refused, status: 405, route: undefined, path: '/v1/models', kind: 'method_not_allowed' },
    { ...refused, status: 404, route: '/v1/files/:id', path: `/v1/files/${id}`, kind: 'not_found' },
    { ...refused, status: 401, route: '/v1/models', path: undefined, kind: 'invalid_token' },
    {
      outcome: 'failed',
      level: 'error',
      status: 502,
      route: '/v1/responses',
      path: undefined,
      kind: 'upstream_error',
    },
  ])
  expect(here.logLines.join()).not.toContain('a-secret')
})

test('a client that disconnects has one line, with what was sent', async () => {
  const here = await start()
  const leaving = new AbortController()
  const response = await here.request('/v1/responses', {
    method: 'POST',
    body: JSON.stringify({ model: 'demo-long', input: 'Hi.', stream: true, store: false }),
    signal: leaving.signal,
  })
  const reader = response.body?.getReader()
  await reader?.read()
  leaving.abort()
  await eventually('the line is written', () => linesOf(here).length > 0)
  const [line, ...others] = linesOf(here)
  expect(others).toEqual([])
  expect(line).toMatchObject({ status: 200, outcome: 'cancelled', model: 'demo-long' })
  expect(Number(line?.['bytes_out'])).toBeGreaterThan(0)
})

describe('a download', () => {
  /** More than the sockets between both ends hold. */
  const bytes = 16 * 1024 * 1024

  /** A client that has the head of a download and reads no further. */
  async function startDownload(here: Gateway) {
    const uploaded = await here.request('/v1/files?name=a.bin', {
      method: 'POST',
      body: new Uint8Array(bytes),
    })
    const { id } = asRecord(await uploaded.json())
    const head = `GET /v1/files/${id}/content HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${await here.token()}\r\n\r\n`
    const socket = await openRawSocket(here.port, head)
    await once(socket, 'readable')
    return socket
  }
  const downloadsOf = (here: Gateway) =>
    linesOf(here).filter(({ route }) => route === '/v1/files/:id/content')

  test('has its line when its last byte was sent to a slow client', async () => {
    const here = await start()
    const socket = await startDownload(here)
    await here.request('/v1/me')
    await eventually('a later request ends', () =>
      linesOf(here).some(({ route }) => route === '/v1/me'),
    )
    expect(downloadsOf(here)).toEqual([])
    socket.resume()
    await eventually('the download ends', () => downloadsOf(here).length > 0)
    socket.destroy()
    expect(downloadsOf(here)).toMatchObject([
      { status: 200, outcome: 'completed', bytes_out: bytes, duration_ms: expect.any(Number) },
    ])
  })

  test('that is aborted is cancelled, and how much was sent is not known', async () => {
    const here = await start()
    const socket = await startDownload(here)
    socket.destroy()
    await eventually('the download ends', () => downloadsOf(here).length > 0)
    expect(downloadsOf(here)).toMatchObject([{ status: 200, outcome: 'cancelled' }])
    expect(downloadsOf(here)[0]).not.toContainKey('bytes_out')
  })
})

test('a WebSocket has a line at its end, and one for each of its requests', async () => {
  const here = await start()
  const headers = { authorization: `Bearer ${await here.token()}` }
  const socket = await openSocket(here.port, { headers })
  socket.send({ type: 'response.create', model: 'demo-fast', input: 'Hi.', store: false })
  await eventually('the response ends', () => linesOf(here).length === 1)
  socket.send({ type: 'nonsense' })
  await eventually('the frame is refused', () => linesOf(here).length === 2)
  socket.socket.end()
  await eventually('the socket ends', () => linesOf(here).length === 3)
  const [response, refused, connection] = linesOf(here)
  const id = String(connection?.['request_id'])
  expect(response).toMatchObject({ ...completed, request_id: `${id}.1`, model: 'demo-fast' })
  expect(refused).toMatchObject({ request_id: `${id}.2`, outcome: 'refused', status: 400 })
  expect(connection).toMatchObject({ status: 101, route: '/v1/responses', outcome: 'completed' })
  expect(Number(connection?.['bytes_out'])).toBeGreaterThan(Number(response?.['bytes_out']))
})

test.each([
  ['all', ['request ended', 'request refused', 'request failed']],
  ['errors', ['request refused', 'request failed']],
  ['off', ['request failed']],
])('with the access log "%s" there are these lines', async (mode, messages) => {
  const here = await start({ SLUICE_ACCESS_LOG: mode })
  await here.request('/v1/models')
  await here.request('/v1/nothing')
  await here.post('/v1/responses', { model: 'demo-fail', input: 'x' })
  expect(linesOf(here).map(({ message }) => message)).toEqual(messages)
})

test('a background response has a line for its request and one for its generation', async () => {
  const here = await start()
  await here.post('/v1/responses', { model: 'demo-fast', input: 'Hi.', background: true })
  await eventually('both are written', () => linesOf(here).length === 2)
  const [request, generation] = linesOf(here)
  expect(request).toMatchObject({ message: 'request ended', status: 200 })
  expect(request).not.toContainKey('model')
  expect(generation).toMatchObject({
    message: 'generation ended',
    request_id: request?.['request_id'],
    output_tokens: expect.any(Number),
  })
})

test('Server-Timing is sent to clients that ask for it', async () => {
  const here = await start()
  const ask = (stream: boolean, headers: Record<string, string> = {}) =>
    here.request('/v1/responses', {
      method: 'POST',
      headers,
      body: JSON.stringify({ model: 'demo-fast', input: 'Hi.', store: false, stream }),
    })
  const timing = { 'x-server-timing': '1' }
  expect((await ask(false)).headers.has('server-timing')).toBe(false)
  const whole = (await ask(false, timing)).headers.get('server-timing')
  expect(whole).toMatch(/^auth;dur=[\d.]+, first-event;dur=[\d.]+, total;dur=[\d.]+$/)
  const streamed = (await ask(true, timing)).headers.get('server-timing')
  expect(streamed).toMatch(/^auth;dur=[\d.]+, first-event;dur=[\d.]+$/)
  const refused = await here.request('/v1/nothing', { headers: timing })
  expect(refused.headers.get('server-timing')).toMatch(/^total;dur=[\d.]+$/)
})
