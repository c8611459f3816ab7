import { afterAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import type { Config } from '#config/schema.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { helperTimeoutMs } from '#test/support/time-limits.ts'

const gateways: Gateway[] = []
afterAll(async () => {
  for (const gateway of gateways.splice(0)) await gateway.stop()
})

async function start(files: Partial<Config['files']>): Promise<Gateway> {
  const gateway = await startGateway({ files })
  gateways.push(gateway)
  return gateway
}

const prompt = (chars: number) => JSON.stringify({ model: 'demo-fast', input: 'x'.repeat(chars) })
const form = (text: string) =>
  `--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n${text}\r\n--b--\r\n`
const formType = 'Content-Type: multipart/form-data; boundary=b'

type Upload = { path: string; body: string; headers?: readonly string[] }

const uploads: [string, Upload][] = [
  ['a short prompt', { path: '/v1/responses', body: prompt(2_000) }],
  ['a longer prompt', { path: '/v1/responses', body: prompt(6_000) }],
  [
    'a message',
    {
      path: '/compat/v1/messages',
      body: JSON.stringify({
        model: 'demo-fast',
        max_tokens: 10,
        messages: [{ role: 'user', content: 'x'.repeat(6_000) }],
      }),
    },
  ],
  ['a file', { path: '/v1/files', body: form('y'.repeat(6_000)), headers: [formType] }],
]

/** Sends the body in pieces with pauses, or only its first half. */
async function send(
  gateway: Gateway,
  { path, body, headers = [] }: Upload,
  { pieces, pauseMs, stalls = false }: { pieces: number; pauseMs: number; stalls?: boolean },
): Promise<string> {
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
  let received = ''
  const ended = new Promise<void>((resolve) => {
    socket.on('data', (piece) => {
      received += piece
    })
    socket.on('error', () => resolve())
    socket.on('close', () => resolve())
  })
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: localhost',
    `Authorization: Bearer ${await gateway.token()}`,
    `Content-Length: ${body.length}`,
    'Connection: close',
    ...headers,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  const length = Math.ceil(body.length / pieces)
  for (
    let at = 0;
    at < (stalls ? body.length / 2 : body.length) && !socket.destroyed;
    at += length
  ) {
    socket.write(body.slice(at, at + length))
    await Bun.sleep(pauseMs)
  }
  await ended
  return received
}

describe.each(uploads)('%s', (_name, upload) => {
  // Bun alone closes a connection that sends less than 16 KB/s after 30 s.
  test.concurrent('may arrive slowly', async () => {
    const gateway = await start({ uploadGapMs: helperTimeoutMs, uploadMs: helperTimeoutMs })
    const received = await send(gateway, upload, { pieces: 36, pauseMs: 1_000 })
    expect(received).toMatch(/^HTTP\/1\.1 20[01] /)
  })

  test.concurrent('that stalls is a 408', async () => {
    const gateway = await start({ uploadGapMs: 300 })
    const received = await send(gateway, upload, { pieces: 4, pauseMs: 1, stalls: true })
    expect(received).toStartWith('HTTP/1.1 408 ')
    expect(received).toContain('The request body was not received in time.')
  })

  test.concurrent('that takes too long is a 408', async () => {
    const gateway = await start({ uploadGapMs: 2_000, uploadMs: 1_000 })
    const received = await send(gateway, upload, { pieces: 40, pauseMs: 100 })
    expect(received).toStartWith('HTTP/1.1 408 ')
  })
})

test.concurrent('a connection is closed when it is idle after a request', async () => {
  const gateway = await start({})
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  socket.resume()
  const body = prompt(10)
  socket.write(
    `POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${await gateway.token()}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  await closed
})

test.each(['gzip', 'br', 'zstd', 'deflate'])(
  'an upload compressed with %s is refused',
  async (encoding) => {
    const gateway = await start({})
    const headers = {
      authorization: `Bearer ${await gateway.token()}`,
      'content-encoding': encoding,
      'content-type': 'multipart/form-data; boundary=b',
    }
    const body = Bun.gzipSync(new TextEncoder().encode(form('text')))
    const response = await fetch(`${gateway.url}/v1/files`, { method: 'POST', headers, body })
    expect(response.status).toBe(415)
    expect(await response.json()).toMatchObject({ error: { code: 'unsupported_encoding' } })
  },
)

test.concurrent('a stream may be silent for longer than the idle timeout', async () => {
  const gateway = await startGateway({ stream: { heartbeatMs: 120_000 } })
  gateways.push(gateway)
  const httpResponse = await gateway.request('/v1/responses', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo-quiet', input: 'quiet 40', stream: true, store: false }),
  })
  expect(await httpResponse.text()).toContain('event: response.completed')
})

test.concurrent('a connection is closed when it is idle after a stream', async () => {
  const gateway = await startGateway({ stream: { heartbeatMs: 1_000, readerStallMs: 1_000 } })
  gateways.push(gateway)
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  let received = ''
  socket.on('data', (piece: Buffer) => {
    received += piece.toString()
  })
  const body = JSON.stringify({ model: 'demo-fast', input: 'hello', stream: true, store: false })
  socket.write(
    `POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${await gateway.token()}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  await closed
  expect(received).toEndWith('data: [DONE]\n\n\r\n0\r\n\r\n')
})
