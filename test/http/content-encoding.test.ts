import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import zlib from 'node:zlib'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { readFailure } from '#test/support/refusals.ts'

/** Compressed request bodies, on every route that reads one. */

const requestBytesMax = 65_536
let gateway: Gateway

beforeAll(async () => {
  gateway = await startGateway({ limits: { requestBytesMax } })
})
afterAll(() => gateway.stop())

const packers: [encoding: string, pack: (bytes: Uint8Array) => Uint8Array][] = [
  ['gzip', zlib.gzipSync],
  ['x-gzip', zlib.gzipSync],
  ['GZip', zlib.gzipSync],
  ['deflate', zlib.deflateSync],
  ['br', zlib.brotliCompressSync],
  ['zstd', zlib.zstdCompressSync],
  ['identity', (bytes) => bytes],
]

const routes: [path: string, body: object][] = [
  ['/v1/responses', { model: 'demo-fast', input: 'Hello', store: false }],
  [
    '/compat/v1/messages',
    { model: 'demo-fast', max_tokens: 64, messages: [{ role: 'user', content: 'Hello' }] },
  ],
]

function send(path: string, encoding: string, body: Uint8Array): Promise<Response> {
  const headers = { 'content-type': 'application/json', 'content-encoding': encoding }
  return gateway.request(path, { method: 'POST', headers, body: new Uint8Array(body) })
}

const json = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))

describe.each(routes)('%s', (path, body) => {
  test.each(packers)('is read as %s', async (encoding, pack) => {
    const answer = await send(path, encoding, pack(json(body)))
    expect(await answer.text()).toContain('You said: Hello')
    expect(answer.status).toBe(200)
  })

  test.each(packers)(
    'whose decompressed size exceeds the limit is refused, as %s',
    async (...by) => {
      const [encoding, pack] = by
      const bomb = new Uint8Array(4_000_000).fill(0x20)
      const failure = await readFailure(await send(path, encoding, pack(bomb)), gateway)
      expect([failure.status, failure.code]).toEqual([413, 'request_too_large'])
      expect(failure.message).toContain(`limit of ${requestBytesMax} bytes`)
    },
  )

  test.each(['gzip', 'deflate', 'br', 'zstd'])(
    'that is not valid %s is refused',
    async (encoding) => {
      const failure = await readFailure(await send(path, encoding, json(body)), gateway)
      expect([failure.status, failure.code]).toEqual([400, 'invalid_request'])
      expect(failure.message).toBe(`The request body is not valid ${encoding} data.`)
    },
  )

  test.each(packers.slice(0, 6))('that is truncated is refused, as %s', async (encoding, pack) => {
    const packed = pack(json(body))
    const cut = await send(path, encoding, packed.subarray(0, packed.length - 6))
    expect((await readFailure(cut, gateway)).status).toBe(400)
  })

  test.each(['compress', 'gzip, br', 'gzip, gzip'])(
    'in %s is refused with a clear message',
    async (encoding) => {
      const failure = await readFailure(await send(path, encoding, json(body)), gateway)
      expect([failure.status, failure.code]).toEqual([415, 'unsupported_encoding'])
      expect(failure.message).toContain('gzip, br, zstd or deflate')
    },
  )
})

describe('a body that expands', () => {
  let spacious: Gateway
  beforeAll(async () => {
    spacious = await startGateway()
  })
  afterAll(() => spacious.stop())

  const padded = (spaces: number) =>
    Buffer.from(
      `${JSON.stringify({ model: 'demo-fast', input: 'Hello', store: false })}${' '.repeat(spaces)}`,
    )
  const sendTo = (encoding: string, body: Uint8Array) =>
    spacious.request('/v1/responses', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-encoding': encoding },
      body: new Uint8Array(body),
    })

  test.each(packers.slice(0, 6))(
    'to more than 100 times its size is refused, as %s',
    async (encoding, pack) => {
      const failure = await readFailure(await sendTo(encoding, pack(padded(4_000_000))), spacious)
      expect([failure.status, failure.code]).toEqual([413, 'request_too_large'])
      expect(failure.message).toContain('more than 100 times its size')
    },
  )

  test.each(packers.slice(0, 6))(
    'to less than a mebibyte is read, as %s',
    async (encoding, pack) => {
      expect((await sendTo(encoding, pack(padded(1_000_000)))).status).toBe(200)
    },
  )

  test('to 40 times its size is read', async () => {
    const noise = Buffer.from(crypto.getRandomValues(new Uint8Array(40_000))).toString('base64')
    const body = JSON.stringify({ model: 'demo-fast', input: noise, store: false })
    const packed = zlib.gzipSync(Buffer.from(body + ' '.repeat(2_000_000)))
    expect(2_000_000 / packed.length).toBeGreaterThan(40)
    expect((await sendTo('gzip', packed)).status).toBe(200)
  })
})

test('a zstd frame that requests a huge window is refused, regardless of its content', async () => {
  const bytes = json({ model: 'demo-fast', input: 'Hello', store: false })
  const small = await streamZstd(bytes, 20)
  expect((await send('/v1/responses', 'zstd', small)).status).toBe(200)
  const huge = await streamZstd(bytes, 27)
  expect((await send('/v1/responses', 'zstd', huge)).status).toBe(400)
})

/** A stream has no content size, so the window may have the maximum size. */
function streamZstd(bytes: Uint8Array, windowLog: number): Promise<Uint8Array> {
  const params = { [zlib.constants.ZSTD_c_windowLog]: windowLog }
  const packer = zlib.createZstdCompress({ params })
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = []
    packer.on('data', (chunk) => chunks.push(chunk))
    packer.on('end', () => resolve(Buffer.concat(chunks)))
    packer.on('error', reject)
    packer.write(bytes.subarray(0, 10))
    packer.flush(() => packer.end(bytes.subarray(10)))
  })
}
