import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, type GatewayOptions, startGateway } from '#test/support/gateway.ts'
import { begun, stopUpstreams, upstreamThat, whole } from '#test/support/generations.ts'
import type { ReplayUpstream } from '#test/support/replay-upstream.ts'
import { openSocket, readTurn, type SocketClient } from '#test/support/socket-client.ts'

/** How connections end regularly: at their maximum age, when idle, and when the server stops. */

let upstream: ReplayUpstream
const gateways: Gateway[] = []

beforeAll(async () => {
  upstream = await upstreamThat({})
})
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.stop()
})
afterAll(stopUpstreams)

async function start(websocket: GatewayOptions['websocket'] = {}) {
  const gateway = await startGateway({
    upstream: [{ url: upstream.baseUrl, models: ['m'] }],
    websocket: { activeMax: 1, ...websocket },
  })
  gateways.push(gateway)
  const authorization = `Bearer ${await gateway.token()}`
  const open = (pongs = true) => openSocket(gateway.port, { headers: { authorization }, pongs })
  return { gateway, open }
}

const request = { model: 'm', input: 'hi', store: false }
const frame = (streamId: string) => ({ type: 'response.create', ...request, stream_id: streamId })
const parsed = (client: SocketClient) => client.texts.map((text) => JSON.parse(text))
const own = (client: SocketClient, streamId: string) =>
  client.texts.filter((text) => JSON.parse(text).stream_id === streamId)

/** A client whose first request runs until the upstream disconnects, and whose second one waits. */
async function openBusy(open: () => Promise<SocketClient>): Promise<SocketClient> {
  upstream.answer({ body: begun, ending: 'hang' })
  const requestCount = upstream.requests.length
  const client = await open()
  client.send(frame('runs'))
  client.send(frame('waits'))
  await upstream.until(({ requests }) => requests.length === requestCount + 1)
  return client
}

/**
 * The running response ends normally, the waiting request with `code`, and the connection is
 * closed.
 */
async function expectOrderlyEnd(
  client: SocketClient,
  { code, closeCode }: { code: string; closeCode: number },
): Promise<void> {
  const refused = () => own(client, 'waits').map((text) => JSON.parse(text).error.code)
  await eventually('what waits is refused', () => refused().length > 0)
  expect(refused()).toEqual([code])
  client.send(frame('late'))
  await eventually('what comes now is refused', () => own(client, 'late').length > 0)
  expect(JSON.parse(own(client, 'late')[0] ?? '')).toMatchObject({ type: 'error', error: { code } })
  expect(client.isClosed()).toBe(false)
  upstream.cut()
  await eventually('the socket is closed', client.isClosed)
  expect((await readTurn(own(client, 'runs'))).response).toMatchObject({ status: 'failed' })
  expect(client.closeCode()).toBe(closeCode)
}

describe('a connection at its maximum age', () => {
  const code = 'websocket_connection_limit_reached'

  test('gets an error and is closed', async () => {
    const { open, gateway } = await start({ ageMaxMs: 100 })
    const client = await open()
    await eventually('it is closed', client.isClosed)
    expect(parsed(client)).toEqual([
      {
        type: 'error',
        status: 400,
        error: {
          type: 'invalid_request_error',
          code,
          message: 'Connections are closed after 0.1 s; open a new one.',
          param: null,
        },
      },
    ])
    expect(client.closeCode()).toBe(1000)
    expect(gateway.deps.sockets.count()).toBe(0)
  })

  test('completes its running response', async () => {
    const { open } = await start({ ageMaxMs: 5_000 })
    const client = await openBusy(open)
    await expectOrderlyEnd(client, { code, closeCode: 1000 })
    expect(parsed(client).at(-1)).toMatchObject({ type: 'error', error: { code } })
  })
})

describe('a server that stops', () => {
  test('closes idle connections at once', async () => {
    const { open, gateway } = await start()
    upstream.answer({ body: whole })
    const [fresh, used] = [await open(), await open()]
    expect((await used.turn(request)).response).toMatchObject({ status: 'completed' })
    gateway.deps.sockets.drain()
    await eventually('both are closed', () => fresh.isClosed() && used.isClosed())
    expect([fresh.closeCode(), used.closeCode()]).toEqual([1012, 1012])
    expect(fresh.texts).toEqual([])
    expect(gateway.deps.sockets.count()).toBe(0)
  })

  test('completes a running response, and accepts no other request', async () => {
    const { open, gateway } = await start()
    const client = await openBusy(open)
    gateway.deps.sockets.drain()
    expect(gateway.deps.sockets.busy()).toBe(1)
    await expectOrderlyEnd(client, { code: 'draining', closeCode: 1012 })
    expect(gateway.deps.sockets.busy()).toBe(0)
  })

  test('closes connections that open during the shutdown', async () => {
    const { open, gateway } = await start()
    gateway.deps.sockets.drain()
    const client = await open()
    await eventually('it is closed', client.isClosed)
    expect(client.closeCode()).toBe(1012)
  })
})

test('a silent client stays connected while it answers pings, and is disconnected if it does not', async () => {
  // The shortest idle timeout of Bun.
  const { open, gateway } = await start({ idleMs: 8_000 })
  upstream.answer({ body: whole })
  const [alive, dead] = [await open(), await open(false)]
  await eventually('the dead one is cut off', dead.isClosed)
  expect(alive.isClosed()).toBe(false)
  expect(gateway.deps.sockets.count()).toBe(1)
  expect((await alive.turn(request)).response).toMatchObject({ status: 'completed' })
  alive.socket.destroy()
})

test('a revoked credential ends its idle and its busy connection without a further request', async () => {
  const { gateway } = await start({ recheckMs: 50 })
  const made = Object(await (await gateway.post('/v1/api-keys', { name: 'socket' })).json())
  const open = () => openSocket(gateway.port, { headers: { 'x-api-key': made['key'] } })
  const [idle, other] = [await open(), await openSocket(gateway.port, await headersOf(gateway))]
  const busy = await openBusy(open)
  const { aborted } = upstream.connections
  await gateway.request(`/v1/api-keys/${made['id']}`, { method: 'DELETE' })
  await eventually('both are closed', () => idle.isClosed() && busy.isClosed())
  expect([idle.closeCode(), busy.closeCode()]).toEqual([1008, 1008])
  await upstream.until(({ connections }) => connections.aborted === aborted + 1)
  expect(own(busy, 'waits').map((text) => JSON.parse(text).error.code)).toEqual(['invalid_api_key'])
  expect(other.isClosed()).toBe(false)
  other.socket.destroy()
})

const headersOf = async (gateway: Gateway) => ({
  headers: { authorization: `Bearer ${await gateway.token()}` },
})
