import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Elysia } from 'elysia'
import { downloadRoutes } from '#files/content/download-routes.ts'
import { readRange } from '#files/content/range.ts'
import { asRecord } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

const content = Buffer.from(Array.from({ length: 1_000 }, (_, at) => at % 251))
const name = 'Übersicht "2026" (neu).bin'

let gateway: Gateway
let path: string

beforeAll(async () => {
  gateway = await startGateway()
  const form = new FormData()
  form.set('file', new File([content], 'as-sent.bin'))
  form.set('name', name)
  const answer = await gateway.request('/v1/files', { method: 'POST', body: form })
  path = `/v1/files/${asRecord(await answer.json())['id']}/content`
})
afterAll(() => gateway.stop())

const ask = (headers: Record<string, string>, method = 'GET') =>
  gateway.request(path, { method, headers })

test('a file comes as an attachment that nothing runs', async () => {
  const answer = await ask({})
  expect(answer.status).toBe(200)
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    'accept-ranges': 'bytes',
    'content-length': '1000',
    'content-security-policy': "default-src 'none'; sandbox",
    'content-disposition':
      'attachment; filename="_bersicht _2026_ (neu).bin"; ' +
      "filename*=UTF-8''%C3%9Cbersicht%20%222026%22%20%28neu%29.bin",
    'x-content-type-options': 'nosniff',
    'x-request-id': expect.stringMatching(/^req_/),
  })
  expect(Buffer.from(await answer.arrayBuffer()).equals(content)).toBe(true)
})

test('ranges give their bytes, and nothing else', async () => {
  const ranges: [string, number, number][] = [
    ['bytes=0-0', 0, 1],
    ['bytes=10-19', 10, 20],
    ['bytes=990-', 990, 1_000],
    ['bytes=-5', 995, 1_000],
    ['bytes=-5000', 0, 1_000],
    ['bytes=500-99999', 500, 1_000],
  ]
  for (const [range, start, end] of ranges) {
    const answer = await ask({ range })
    expect([range, answer.status]).toEqual([range, 206])
    expect(answer.headers.get('content-range')).toBe(`bytes ${start}-${end - 1}/1000`)
    expect(answer.headers.get('content-length')).toBe(String(end - start))
    const part = Buffer.from(await answer.arrayBuffer())
    expect(part.equals(content.subarray(start, end))).toBe(true)
  }
})

test('bytes that are not there are told with the size of the file', async () => {
  for (const range of ['bytes=1000-', 'bytes=5000-6000', 'bytes=-0']) {
    const answer = await ask({ range })
    expect([range, answer.status]).toEqual([range, 416])
    expect(answer.headers.get('content-range')).toBe('bytes */1000')
    expect(await answer.json()).toMatchObject({ error: { code: 'range_not_satisfiable' } })
  }
})

test('a range that cannot be read, or several of them, give the whole file', async () => {
  for (const range of ['bytes=5-2', 'bytes=0-1,5-6', 'lines=1-2', 'bytes=a-b', 'bytes=-', '']) {
    expect([range, (await ask({ range })).status]).toEqual([range, 200])
  }
})

test('who has the content is not sent it again', async () => {
  const etag = (await ask({})).headers.get('etag') ?? ''
  expect(etag).toMatch(/^"[0-9a-f]{64}"$/)
  for (const known of [etag, `"x", W/${etag}`, '*']) {
    const answer = await ask({ 'if-none-match': known })
    expect(answer.status).toBe(304)
    expect(await answer.text()).toBe('')
  }
  expect((await ask({ 'if-none-match': '"other"' })).status).toBe(200)
  const refused = await ask({ 'if-match': '"other"' })
  expect([refused.status, refused.headers.get('etag')]).toEqual([412, etag])
})

test('a range of a content that has changed gives the whole of the new one', async () => {
  const etag = (await ask({})).headers.get('etag') ?? ''
  expect((await ask({ range: 'bytes=0-1', 'if-range': etag })).status).toBe(206)
  expect((await ask({ range: 'bytes=0-1', 'if-range': '"other"' })).status).toBe(200)
})

test('however short readers may stall, who reads is served', async () => {
  // Longer than a turn of Bun's clock, which ends the time of every connection that it finds over.
  const endMs = performance.now() + 4_500
  const storage = {
    async read() {
      await Bun.sleep(100)
      return new Blob([content]).stream()
    },
  }
  const { auth, files, config } = gateway.deps
  const impatient = { ...config, stream: { ...config.stream, readerStallMs: 1_000 } }
  const server = new Elysia()
    .use(downloadRoutes({ auth, files, storage, config: impatient }))
    .listen({ hostname: '127.0.0.1', port: 0, idleTimeout: 30 })
  const headers = { authorization: `Bearer ${await gateway.token()}` }
  const url = `http://127.0.0.1:${server.server?.port}${path}`
  const read = async () => {
    while (performance.now() < endMs) {
      const answer = await fetch(url, { headers, keepalive: false })
      expect((await answer.bytes()).length).toBe(content.length)
    }
  }
  await Promise.all([read(), read(), read(), read()])
  await server.stop(true)
}, 60_000)

test('HEAD tells the same without the bytes', async () => {
  const answer = await ask({}, 'HEAD')
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-length')).toBe('1000')
  expect(answer.headers.get('etag')).toMatch(/^"/)
})

test('somebody else does not find it', async () => {
  const authorization = `Bearer ${await gateway.token(['users'], 'stranger')}`
  expect((await ask({ authorization })).status).toBe(404)
})

test('an empty content has no range', () => {
  expect(readRange('bytes=0-', 0)).toBe('unsatisfiable')
  expect(readRange('bytes=-1', 0)).toBe('unsatisfiable')
  expect(readRange(null, 0)).toBe(null)
})
