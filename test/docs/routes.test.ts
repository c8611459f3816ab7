import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { asRecord } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

/** Serving the document and the pages. */

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

const ask = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(gateway.url + path, { method, headers })

describe('the document', () => {
  test('is not sent again to a client that has it', async () => {
    const answer = await ask('/openapi.json')
    const tag = answer.headers.get('etag') ?? ''
    expect(tag).toMatch(/^"[0-9a-f]{16}"$/)
    const again = await ask('/openapi.json', { 'if-none-match': tag })
    expect([again.status, await again.text()]).toEqual([304, ''])
    const other = await ask('/openapi.json', { 'if-none-match': '"another"' })
    expect(other.status).toBe(200)
  })

  test('is compressed if the client accepts it, with equal content', async () => {
    const raw = await fetch(`${gateway.url}/openapi.json`, {
      headers: { 'accept-encoding': 'gzip' },
      decompress: false,
    })
    expect(raw.headers.get('content-encoding')).toBe('gzip')
    const packed = await raw.arrayBuffer()
    const plain = await ask('/openapi.json', { 'accept-encoding': 'identity' })
    expect(plain.headers.get('content-encoding')).toBeNull()
    expect(plain.headers.get('vary')).toContain('accept-encoding')
    const text = await plain.text()
    expect(new TextDecoder().decode(Bun.gunzipSync(packed))).toBe(text)
    expect(packed.byteLength).toBeLessThan(text.length / 4)
    const refused = await ask('/openapi.json', { 'accept-encoding': 'gzip;q=0, identity' })
    expect(refused.headers.get('content-encoding')).toBeNull()
  })

  test('responds to HEAD like GET, without the body', async () => {
    const answer = await ask('/openapi.json', {}, 'HEAD')
    expect([answer.status, await answer.text()]).toEqual([200, ''])
    expect(answer.headers.get('etag')).toBe((await ask('/openapi.json')).headers.get('etag'))
  })
})

describe.each(['/docs', '/scalar'])('the page %s', (path) => {
  test('allows its own scripts only, and no other host', async () => {
    const answer = await ask(path)
    const policy = answer.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("connect-src 'self'")
    expect(policy).toContain("frame-ancestors 'none'")
    const [, scripts = ''] = /script-src ([^;]+)/.exec(policy) ?? []
    expect(scripts).toMatch(/^'nonce-[A-Za-z0-9+/]{22}=='$/)
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer')
    const page = await answer.text()
    expect(page).not.toMatch(/(src|href)="(https?:)?\/\//)
    expect(page.match(/<script/g)?.length).toBe(page.split(scripts.slice(7, -1)).length - 1)
  })

  test('has a new nonce for each response', async () => {
    const policies = await Promise.all(
      [1, 2].map(async () => (await ask(path)).headers.get('content-security-policy')),
    )
    expect(policies[0]).not.toBe(policies[1] ?? null)
  })

  test('responds to HEAD like GET, without the body', async () => {
    const answer = await ask(path, {}, 'HEAD')
    expect([answer.status, await answer.text()]).toEqual([200, ''])
  })

  test('its assets are immutable, complete and compressed', async () => {
    const page = await (await ask(path)).text()
    const assets = [...page.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, found = '']) => found)
    const files = assets.filter((found) => found !== '/openapi.json')
    expect(files.length).toBeGreaterThanOrEqual(3)
    for (const file of files) {
      const packed = await ask(file)
      expect(packed.status).toBe(200)
      expect(packed.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
      expect(packed.headers.get('content-encoding')).toBe('gzip')
      expect(packed.headers.get('content-type')).toMatch(/^text\/(javascript|css); charset=utf-8$/)
      expect(packed.headers.get('x-content-type-options')).toBe('nosniff')
      const plain = await ask(file, { 'accept-encoding': 'identity' })
      expect(await plain.text()).toBe(await packed.text())
    }
  })
})

test.each([
  '/docs/assets/0000000000000000/scalar.js',
  '/docs/assets/undefined/none.js',
  '/docs/assets/0000000000000000/..%2f..%2fpackage.json',
  '/docs/assets/0000000000000000/__proto__',
])('%s is not found', async (path) => {
  const answer = await ask(path)
  expect(answer.status).toBe(404)
  expect(asRecord(asRecord(await answer.json())['error'])['code']).toBe('not_found')
})

test('with docs.require_auth the document requires a credential', async () => {
  const closed = await startGateway({ docs: { requireAuth: true } })
  try {
    expect((await fetch(`${closed.url}/openapi.json`)).status).toBe(401)
    const stranger = { authorization: `Bearer ${await closed.token(['strangers'], 'stranger')}` }
    expect((await closed.request('/openapi.json', { headers: stranger })).status).toBe(403)
    const document = asRecord(await (await closed.request('/openapi.json')).json())
    const { get } = asRecord(asRecord(document['paths'])['/openapi.json'])
    expect(asRecord(get)['x-permission']).toBe('can_access_api')
    expect((await fetch(`${closed.url}/docs`)).status).toBe(200)
  } finally {
    await closed.stop()
  }
})

test('with docs.enabled = false there is no documentation', async () => {
  const without = await startGateway({ docs: { enabled: false } })
  try {
    for (const path of ['/docs', '/scalar', '/openapi.json']) {
      expect((await without.request(path)).status).toBe(404)
    }
  } finally {
    await without.stop()
  }
})
