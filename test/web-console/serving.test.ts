import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { chooseCoding } from '#web-console/compress.ts'
import { prefersHtml } from '#web-console/endpoints.ts'

let gateway: Gateway
let script: string

beforeAll(async () => {
  gateway = await startGateway()
  const html = await (await get('/console/')).text()
  script = /src="(\/console\/assets\/[^"]+\.js)"/.exec(html)?.[1] ?? ''
})
afterAll(() => gateway.stop())

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(gateway.url + path, { headers, redirect: 'manual', decompress: false } as RequestInit)

const browserAccept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

test('the root sends browsers to the console, and API clients get JSON', async () => {
  const browser = await get('/', { accept: browserAccept })
  expect([browser.status, browser.headers.get('location')]).toEqual([302, '/console/'])
  for (const accept of ['*/*', 'application/json', 'application/json, text/html;q=0.9']) {
    const client = await get('/', { accept })
    expect([client.status, await client.text()]).toEqual([200, '{"status":"ok"}'])
    expect(client.headers.get('vary')).toBe('accept')
  }
})

test.each([
  [browserAccept, true],
  ['text/html', true],
  ['text/html;q=0.5, application/json;q=0.4', true],
  ['text/html, application/json', false],
  ['text/html;q=0', false],
  ['*/*', false],
  ['', false],
  [null, false],
])('a client with accept %j prefers HTML: %p', (accept, expected) => {
  expect(prefersHtml(accept)).toBe(expected)
})

describe('the page', () => {
  test('is served under every path without a file ending', async () => {
    const first = await (await get('/console/')).text()
    expect(first).toContain('<div id="app">')
    for (const path of ['/console/models', '/console/files/a/b', '/console/index.html']) {
      const response = await get(path)
      expect([response.status, await response.text()]).toEqual([200, first])
    }
    const bare = await get('/console')
    expect([bare.status, bare.headers.get('location')]).toEqual([302, '/console/'])
  })

  test('may load nothing from elsewhere and nothing inline', async () => {
    const response = await get('/console/')
    const policy = response.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'self'")
    expect(policy).toContain("script-src 'self'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).toContain("base-uri 'none'")
    expect(policy).not.toMatch(/unsafe|https?:|\*/)
    const html = await response.text()
    expect(html).not.toMatch(/<style|style=|<script(?![^>]*\ssrc=)|\son\w+=|https?:\/\//)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'permissions-policy': expect.stringContaining('microphone=(self)'),
      'cache-control': 'no-cache',
    })
  })

  test('is sent again only when it has changed', async () => {
    const etag = (await get('/console/')).headers.get('etag') ?? ''
    const known = await get('/console/playground', { 'if-none-match': etag })
    expect([known.status, await known.text()]).toEqual([304, ''])
    expect(known.headers.get('content-security-policy')).toContain('default-src')
    expect((await get('/console/', { 'if-none-match': '"other"' })).status).toBe(200)
  })
})

describe('a file', () => {
  test('has the hash of its content in its name, and is cached for ever', async () => {
    const response = await get(script)
    expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(response.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
  })

  test('is the same in every coding, with a tag for each', async () => {
    const read = async (coding: string) => {
      const response = await get(script, { 'accept-encoding': coding })
      expect(response.headers.get('content-encoding')).toBe(coding === '' ? null : coding)
      expect(response.headers.get('vary')).toBe('accept-encoding')
      const etag = response.headers.get('etag')
      return { etag, bytes: await response.bytes() }
    }
    const plain = await read('')
    const text = Buffer.from(plain.bytes).toString()
    const [br, zstd, gzip] = [await read('br'), await read('zstd'), await read('gzip')]
    expect(brotliDecompressSync(br.bytes).toString()).toBe(text)
    expect(Buffer.from(Bun.zstdDecompressSync(zstd.bytes)).toString()).toBe(text)
    expect(gunzipSync(gzip.bytes).toString()).toBe(text)
    expect(br.bytes.length).toBeLessThan(plain.bytes.length / 2)
    expect(new Set([plain, br, zstd, gzip].map(({ etag }) => etag)).size).toBe(4)
  })

  test('that does not exist is 404, and no path leads out of the folder', async () => {
    const paths = [
      '/console/assets/none.js',
      '/console/manifest.json',
      '/console/assets/%2e%2e/manifest.json',
      '/console/..%2f..%2fpackage.json',
      '/console/%2fetc%2fpasswd.txt',
      '/console/constructor.js',
    ]
    for (const path of paths) expect([path, (await get(path)).status]).toEqual([path, 404])
  })
})

test('codings are chosen by what the client accepts', () => {
  expect(chooseCoding('gzip, deflate, br, zstd')).toBe('br')
  expect(chooseCoding('gzip, br;q=0, ZSTD')).toBe('zstd')
  expect(chooseCoding('gzip;q=0.0')).toBeNull()
  expect(chooseCoding('identity')).toBeNull()
  expect(chooseCoding(null)).toBeNull()
})

test('other methods are refused with the allowed ones', async () => {
  const response = await fetch(`${gateway.url}/console/`, { method: 'POST' })
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
})

test('a console that is switched off does not exist', async () => {
  const off = await startGateway({ console: { enabled: false } })
  try {
    const root = await fetch(off.url, { headers: { accept: browserAccept } })
    expect([root.status, await root.json()]).toEqual([200, { status: 'ok' }])
    expect((await fetch(`${off.url}/console/`)).status).toBe(404)
    expect((await fetch(off.url + script)).status).toBe(404)
  } finally {
    await off.stop()
  }
})
