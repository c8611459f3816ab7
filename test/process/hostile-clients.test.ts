import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import type { Socket } from 'node:net'
import { createDice } from '#test/support/dice.ts'
import { readEvents } from '#test/support/event-reading.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  childrenOf,
  configFile,
  type GatewayProcess,
  openDescriptors,
  signToken,
  startGatewayProcess,
  stopProcesses,
} from '#test/support/process.ts'
import { exchangeBytes, openSocket } from '#test/support/raw-exchange.ts'

const seed = 20_240_607
let gateway: GatewayProcess
let worker: number
let request: string
/** A request head that arrives byte by byte, and its end. */
let slowHead: { readonly socket: Socket; readonly closed: Promise<void> }

beforeAll(async () => {
  // Its sockets are counted, so those to the database must not grow in number under load.
  const environment = { SLUICE_CONFIG: configFile('database_connections_max = 1\n') }
  gateway = await startGatewayProcess({ environment })
  worker = childrenOf(gateway.pid)[0] ?? 0
  const body = JSON.stringify({ model: 'demo', input: 'one two three four', stream: true })
  request =
    `POST /v1/responses HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${await signToken()}\r\n` +
    `Content-Length: ${body.length}\r\n\r\n${body}`
  await expectService()
  slowHead = await sendHeadSlowly()
})
afterAll(stopProcesses)

const everyMs = 200

async function sendHeadSlowly(): Promise<typeof slowHead> {
  const socket = await openSocket(gateway.port(), 'GET /readyz HTTP/1.1\r\nX-Slow: ')
  const timer = setInterval(() => socket.write('a'), everyMs)
  const { promise, resolve } = Promise.withResolvers<void>()
  socket.on('close', () => {
    clearInterval(timer)
    resolve()
  })
  return { socket, closed: promise }
}

/** The same worker still serves, and nothing unexpected was logged. */
afterEach(async () => {
  await expectService()
  expect(childrenOf(gateway.pid)).toEqual([worker])
  const uncaught = gateway.log().filter(({ message }) => /^(uncaught|unhandled)/.test(`${message}`))
  expect(uncaught).toEqual([])
})

async function expectService(): Promise<void> {
  const answer = await gateway.ask({ model: 'demo-fast', input: 'anyone there?', stream: true })
  expect(await readEvents(answer).whole()).toEndWith('data: [DONE]\n\n')
}

const sockets = () => openDescriptors(worker).filter((name) => name.startsWith('socket:')).length

function read(socket: Socket, byteCount: number): Promise<void> {
  let left = byteCount
  return new Promise((resolve) => {
    if (left === 0) resolve()
    socket.on('data', (bytes) => {
      left -= bytes.length
      if (left <= 0) resolve()
    })
  })
}

test('clients that disconnect at any moment leave no connection, generation or log error', async () => {
  const dice = createDice(seed)
  const before = sockets()
  const leavings = Array.from({ length: 200 }, (_, index) => ({
    // Every other one sends its whole request, and leaves after some bytes of the answer.
    sent: index % 2 === 0 ? request.length : dice.upTo(request.length),
    reads: index % 2 === 0 ? dice.upTo(6_000) : 0,
    resets: dice.upTo(2) === 0,
  }))
  await Promise.all(
    leavings.map(async ({ sent, reads, resets }) => {
      const socket = await openSocket(gateway.port(), request.slice(0, sent))
      await read(socket, reads)
      if (resets) socket.resetAndDestroy()
      else socket.destroy()
    }),
  )
  await eventually('the sockets are closed', () => sockets() <= before)
})

test('bytes that are not HTTP affect no other client', async () => {
  const dice = createDice(seed)
  const before = sockets()
  const beginnings = ['', 'GET ', 'POST /v1/responses HTTP/1.1\r\n', '\x16\x03\x01\x02\x00\x01\x00']
  const garbage = Array.from({ length: 60 }, (_, index) => {
    const noise = Uint8Array.from({ length: dice.upTo(4_096) }, () => dice.upTo(256))
    return Buffer.concat([
      Buffer.from(beginnings[index % beginnings.length] ?? '', 'latin1'),
      noise,
    ])
  })
  const open = await Promise.all(garbage.map((bytes) => openSocket(gateway.port(), bytes)))
  await expectService()
  for (const socket of open) socket.destroy()
  await eventually('the sockets are closed', () => sockets() <= before)
})

test('a hundred incomplete requests delay no other client', async () => {
  const before = sockets()
  const headEnd = request.indexOf('\r\n\r\n') + 4
  const unfinished = Array.from({ length: 100 }, (_, index) =>
    request.slice(0, index % 2 === 0 ? headEnd + 5 : headEnd - 10),
  )
  const open = await Promise.all(unfinished.map((part) => openSocket(gateway.port(), part)))
  await eventually('all are connected', () => sockets() >= open.length)
  await expectService()
  for (const socket of open) socket.destroy()
  await eventually('the sockets are closed', () => sockets() <= before)
})

test.each([
  ['one header of a megabyte', `X-Bomb: ${'a'.repeat(1_048_576)}\r\n`],
  ['thousands of headers', 'X-Bomb: a\r\n'.repeat(5_000)],
])('%s is refused', async (_name, headers) => {
  const answer = await exchangeBytes(
    gateway.port(),
    `GET /readyz HTTP/1.1\r\nHost: gateway\r\n${headers}\r\n`,
  )
  expect(answer).toStartWith('HTTP/1.1 431 ')
})

test('a path of a megabyte is refused', async () => {
  const path = 'a'.repeat(1_048_576)
  const answer = await exchangeBytes(gateway.port(), `GET /${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
  expect(answer).toStartWith('HTTP/1.1 431 ')
})

test.each([
  ['a length and chunks at once', 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n'],
  ['two lengths', 'Content-Length: 2\r\nContent-Length: 30\r\n'],
  ['a negative length', 'Content-Length: -2\r\n'],
])(
  'a body with %s is refused, and nothing after it is parsed as a request',
  async (_name, lines) => {
    const smuggled = '0\r\n\r\nGET /readyz HTTP/1.1\r\nHost: gateway\r\n\r\n'
    const answer = await exchangeBytes(
      gateway.port(),
      `POST /v1/responses HTTP/1.1\r\nHost: gateway\r\n${lines}\r\n${smuggled}`,
    )
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 400'])
  },
)

test('a request head that arrives byte by byte is cut', async () => {
  await slowHead.closed
  expect(slowHead.socket.bytesRead).toBe(0)
})
