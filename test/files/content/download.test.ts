import { afterAll, beforeAll, expect, test } from 'bun:test'
import { downloadEndpoints, parseRange } from '#files/content/download-endpoints.ts'
import { asRecord } from '#lib/json.ts'
import { createTestApp } from '#test/support/endpoints.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

const content = Buffer.from(Array.from({ length: 1_000 }, (_, index) => index % 251))
const name = 'Übersicht "2026" (neu).bin'

let gateway: Gateway
let path: string

beforeAll(async () => {
  gateway = await startGateway()
  const form = new FormData()
  form.set('file', new File([content], 'as-sent.bin'))
  form.set('name', name)
  const response = await gateway.request('/v1/files', { method: 'POST', body: form })
  path = `/v1/files/${asRecord(await response.json())['id']}/content`
})
afterAll(() => gateway.stop())

const ask = (headers: Record<string, string>, method = 'GET') =>
  gateway.request(path, { method, headers })

test('a download is an attachment that browsers do not run', async () => {
  const response = await ask({})
  expect(response.status).toBe(200)
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'accept-ranges': 'bytes',
    'content-length': '1000',
    'content-security-policy': "default-src 'none'; sandbox",
    'content-disposition':
      'attachment; filename="_bersicht _2026_ (neu).bin"; ' +
      "filename*=UTF-8''%C3%9Cbersicht%20%222026%22%20%28neu%29.bin",
    'x-content-type-options': 'nosniff',
    'x-request-id': expect.stringMatching(/^req_/),
  })
  expect(Buffer.from(await response.arrayBuffer()).equals(content)).toBe(true)
})

test('a range returns exactly its bytes', async () => {
  const ranges: [string, number, number][] = [
    ['bytes=0-0', 0, 1],
    ['bytes=10-19', 10, 20],
    ['bytes=990-', 990, 1_000],
    ['bytes=-5', 995, 1_000],
    ['bytes=-5000', 0, 1_000],
    ['bytes=500-99999', 500, 1_000],
  ]
  for (const [range, start, end] of ranges) {
    const response = await ask({ range })
    expect([range, response.status]).toEqual([range, 206])
    expect(response.headers.get('content-range')).toBe(`bytes ${start}-${end - 1}/1000`)
    expect(response.headers.get('content-length')).toBe(String(end - start))
    const part = Buffer.from(await response.arrayBuffer())
    expect(part.equals(content.subarray(start, end))).toBe(true)
  }
})

test('an unsatisfiable range returns the size of the file', async () => {
  for (const range of ['bytes=1000-', 'bytes=5000-6000', 'bytes=-0']) {
    const response = await ask({ range })
    expect([range, response.status]).toEqual([range, 416])
    expect(response.headers.get('content-range')).toBe('bytes */1000')
    expect(await response.json()).toMatchObject({ error: { code: 'range_not_satisfiable' } })
  }
})

test('an unknown form and several ranges return the whole file', async () => {
  for (const range of ['bytes=5-2', 'bytes=0-1,5-6', 'lines=1-2', 'bytes=a-b', 'bytes=-', '']) {
    expect([range, (await ask({ range })).status]).toEqual([range, 200])
  }
})

test('clients can revalidate by the entity tag', async () => {
  const etag = (await ask({})).headers.get('etag') ?? ''
  expect(etag).toMatch(/^"[0-9a-f]{64}"$/)
  for (const known of [etag, `"x", W/${etag}`, '*']) {
    const response = await ask({ 'if-none-match': known })
    expect(response.status).toBe(304)
    expect(await response.text()).toBe('')
  }
  expect((await ask({ 'if-none-match': '"other"' })).status).toBe(200)
  const refused = await ask({ 'if-match': '"other"' })
  expect([refused.status, refused.headers.get('etag')]).toEqual([412, etag])
})

test('an outdated If-Range returns the whole file', async () => {
  const etag = (await ask({})).headers.get('etag') ?? ''
  expect((await ask({ range: 'bytes=0-1', 'if-range': etag })).status).toBe(206)
  expect((await ask({ range: 'bytes=0-1', 'if-range': '"other"' })).status).toBe(200)
})

test('a short stall deadline does not disconnect clients that read', async () => {
  // Longer than the interval in which Bun checks connection timeouts.
  const endMs = performance.now() + 4_500
  const storage = {
    async read() {
      await Bun.sleep(100)
      return new Blob([content]).stream()
    },
  }
  const { auth, files, config } = gateway.deps
  const stream = { ...config.stream, readerStallMs: 1_000 }
  const endpoints = downloadEndpoints({ files, storage, config: { stream } })
  const server = createTestApp(endpoints, { auth, config }).listen({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 30,
  })
  const headers = { authorization: `Bearer ${await gateway.token()}` }
  const url = `http://127.0.0.1:${server.server?.port}${path}`
  const read = async () => {
    while (performance.now() < endMs) {
      const response = await fetch(url, { headers, keepalive: false })
      expect((await response.bytes()).length).toBe(content.length)
    }
  }
  await Promise.all([read(), read(), read(), read()])
  await server.stop(true)
})

test('HEAD returns the headers without the content', async () => {
  const response = await ask({}, 'HEAD')
  expect(response.status).toBe(200)
  expect(response.headers.get('content-length')).toBe('1000')
  expect(response.headers.get('etag')).toMatch(/^"/)
})

test('other users get 404', async () => {
  const authorization = `Bearer ${await gateway.token(['users'], 'stranger')}`
  expect((await ask({ authorization })).status).toBe(404)
})

test('an empty file has no satisfiable range', () => {
  expect(parseRange('bytes=0-', 0)).toBe('unsatisfiable')
  expect(parseRange('bytes=-1', 0)).toBe('unsatisfiable')
  expect(parseRange(null, 0)).toBe(null)
})
