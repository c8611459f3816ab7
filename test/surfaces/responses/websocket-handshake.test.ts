import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { readFailure } from '#test/support/refusals.ts'
import { openSocket } from '#test/support/socket-client.ts'

/** Authentication of WebSockets, and its revocation. */

let gateway: Gateway
let token: string
let key: string
let keyId: string

beforeAll(async () => {
  gateway = await startGateway()
  token = await gateway.token()
  const made = Object(await (await gateway.post('/v1/api-keys', { name: 'socket' })).json())
  key = made['key']
  keyId = made['id']
})
afterAll(() => gateway.stop())

const path = '/v1/responses'
const statusOf = (head: string) => Number(head.split(' ')[1])
const request = { model: 'demo-fast', input: 'hi', store: false }

describe('a credential', () => {
  const places: [where: string, how: () => Parameters<typeof openSocket>[1]][] = [
    ['Authorization', () => ({ headers: { authorization: `Bearer ${token}` } })],
    ['Authorization, a key', () => ({ headers: { authorization: `Bearer ${key}` } })],
    ['X-Api-Key', () => ({ headers: { 'x-api-key': key } })],
    ['?token=', () => ({ path: `${path}?token=${token}` })],
    [
      'Authorization, with an empty ?token= and an empty X-Api-Key',
      () => ({
        path: `${path}?token=`,
        headers: { authorization: `Bearer ${token}`, 'x-api-key': '' },
      }),
    ],
    ['?token=, a key', () => ({ path: `${path}?token=${key}` })],
    [
      'a subprotocol',
      () => ({ headers: { 'sec-websocket-protocol': `openai-insecure-api-key.${key}` } }),
    ],
  ]

  test.each(places)('is taken from %s', async (_, how) => {
    const client = await openSocket(gateway.port, how())
    expect(statusOf(client.head)).toBe(101)
    expect(client.head).toMatch(/x-request-id: req_/i)
    expect((await client.turn(request)).response).toMatchObject({ status: 'completed' })
    client.socket.destroy()
  })

  const refused: [what: string, how: () => Promise<object>, status: number][] = [
    ['none', async () => ({}), 401],
    ['an invalid token', async () => ({ headers: { authorization: 'Bearer a.b.c' } }), 401],
    ['an invalid API key', async () => ({ path: `${path}?token=${key}x` }), 401],
    [
      'an invalid API key in a subprotocol with a valid token',
      async () => ({
        headers: {
          'sec-websocket-protocol': `openai-insecure-api-key.${key}x`,
          authorization: `Bearer ${token}`,
        },
      }),
      401,
    ],
    [
      'a user without the permission',
      async () => ({
        headers: { authorization: `Bearer ${await gateway.token(['strangers'], 'stranger')}` },
      }),
      403,
    ],
  ]

  test.each(refused)('that is %s is refused before the upgrade', async (_, how, status) => {
    const client = await openSocket(gateway.port, await how())
    expect(statusOf(client.head)).toBe(status)
    expect(client.head).toContain('application/json')
    expect(gateway.deps.sockets.count()).toBe(0)
    client.socket.destroy()
  })
})

test('a subprotocol is selected as browsers require, preferably not the credential', async () => {
  const offers: [offered: string, answered: string | undefined][] = [
    [`realtime, openai-insecure-api-key.${key}, beta`, 'realtime'],
    [`openai-insecure-api-key.${key}, realtime`, 'realtime'],
    [`openai-insecure-api-key.${key}`, `openai-insecure-api-key.${key}`],
  ]
  for (const [offered, answered] of offers) {
    const client = await openSocket(gateway.port, {
      headers: { 'sec-websocket-protocol': offered },
    })
    expect(/^sec-websocket-protocol: (.*)$/im.exec(client.head)?.[1]).toBe(answered)
    client.socket.destroy()
  }
  const none = await openSocket(gateway.port, { headers: { authorization: `Bearer ${token}` } })
  expect(none.head).not.toMatch(/sec-websocket-protocol/i)
  none.socket.destroy()
})

test('compression is not negotiated', async () => {
  const headers = {
    authorization: `Bearer ${token}`,
    'sec-websocket-extensions': 'permessage-deflate; client_max_window_bits',
  }
  const client = await openSocket(gateway.port, { headers })
  expect(statusOf(client.head)).toBe(101)
  expect(client.head).not.toMatch(/sec-websocket-extensions/i)
  client.socket.destroy()
})

test('a GET without an upgrade is refused', async () => {
  const httpResponse = await gateway.request(path)
  expect(httpResponse.headers.get('upgrade')).toBe('websocket')
  const failure = await readFailure(httpResponse, gateway)
  expect([failure.status, failure.code]).toEqual([426, 'upgrade_required'])
})

test('a handshake without its key is refused', async () => {
  const httpResponse = await gateway.request(path, { headers: { upgrade: 'websocket' } })
  expect((await readFailure(httpResponse, gateway)).status).toBe(400)
})

test('the number of connections is limited', async () => {
  const small = await startGateway({ websocket: { connectionsMax: 2 } })
  const headers = { authorization: `Bearer ${token}` }
  const [first, second] = [
    await openSocket(small.port, { headers }),
    await openSocket(small.port, { headers }),
  ]
  const third = await openSocket(small.port, { headers })
  expect(statusOf(third.head)).toBe(503)
  expect(third.head).toMatch(/retry-after: 1/i)
  first?.socket.destroy()
  await eventually('there is room again', () => small.deps.sockets.count() === 1)
  const fourth = await openSocket(small.port, { headers })
  expect((await fourth.turn(request)).response).toMatchObject({ status: 'completed' })
  for (const { socket } of [second, third, fourth]) socket.destroy()
  await small.stop()
})

test('the connection of a revoked API key is closed at once', async () => {
  const client = await openSocket(gateway.port, { headers: { 'x-api-key': key } })
  expect((await client.turn(request)).failure).toBeUndefined()
  await gateway.request(`/v1/api-keys/${keyId}`, { method: 'DELETE' })
  await eventually('the socket is closed', client.isClosed)
  expect(client.closeCode()).toBe(1008)
})
