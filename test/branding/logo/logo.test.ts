import { beforeEach, describe, expect, test } from 'bun:test'
import { errorOf, outcome, type SentBody, usePortalGateway } from '#test/support/portal-gateway.ts'
import { pngOf, pngOfBytes, svgOf, webpFrame, webpOf } from '#test/support/sample-images.ts'
import { parseHarmless } from './svg/harmless-svg.ts'

const fixture = usePortalGateway()
const send: typeof fixture.gateway.send = (...args) => fixture.gateway.send(...args)
const show = (headers: Record<string, string> = {}) =>
  send('users', 'GET /v1/branding/logo', { headers })
const bytesMax = 524_288

type Sent = Uint8Array | string

function postBare(bytes: Sent | ReadableStream, type = 'image/png') {
  const headers = { 'content-type': type }
  return send('admins', 'POST /v1/branding/logo', { body: bytes as SentBody, headers })
}

function postForm(bytes: Sent, { field = 'file', name = 'logo.png', type = 'image/png' } = {}) {
  const body = new FormData()
  body.append(field, new File([bytes as Uint8Array<ArrayBuffer> | string], name, { type }))
  return send('admins', 'POST /v1/branding/logo', { body })
}

beforeEach(async () => {
  expect(outcome(await send('admins', 'DELETE /v1/branding/logo'))).toBe('204')
})

test('there is a default logo before the first upload and after a deletion', async () => {
  const before = await show()
  expect([before.status, before.headers.get('content-type')]).toEqual([200, 'image/svg+xml'])
  parseHarmless(before.text)
  await postBare(pngOf(3, 2))
  expect((await show()).headers.get('content-type')).toBe('image/png')
  const removed = await send('admins', 'DELETE /v1/branding/logo')
  expect([removed.status, removed.text]).toEqual([204, ''])
  expect((await show()).text).toBe(before.text)
})

describe('an uploaded image is returned byte for byte', async () => {
  const images: [string, Buffer][] = [
    ['image/png', pngOf(3, 2)],
    ['image/webp', webpOf(await webpFrame(3, 2))],
  ]
  const ways: [string, (bytes: Buffer, type: string) => ReturnType<typeof postBare>][] = [
    ['as a raw body', postBare],
    ['as the field "file"', (bytes, type) => postForm(bytes, { type })],
    ['as the field "logo"', (bytes, type) => postForm(bytes, { field: 'logo', type })],
  ]
  for (const [type, bytes] of images) {
    test.each(ways)(`${type}, %s`, async (_, post) => {
      const response = await post(bytes, type)
      const sha256 = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
      expect([response.status, response.body]).toEqual([
        200,
        {
          content_type: type,
          bytes: bytes.length,
          sha256,
          width: 3,
          height: 2,
          sanitized: [],
          logo_url: expect.stringContaining(`/v1/branding/logo?v=${sha256.slice(0, 12)}&sig=`),
        },
      ])
      const shown = await show()
      expect([shown.headers.get('content-type'), shown.bytes]).toEqual([
        type,
        Uint8Array.from(bytes),
      ])
      expect(shown.headers.get('etag')).toBe(`"${sha256}"`)
      expect(response.headers.get('etag')).toBe(`"${sha256}"`)
    })
  }
})

test('an SVG is sanitised, and the removals are reported', async () => {
  const svg = svgOf('<script>alert(1)</script><path onclick="x" d="M0 0h1"/>')
  const response = await postForm(svg, { name: 'logo.svg', type: 'image/svg+xml' })
  expect(response.body).toMatchObject({
    content_type: 'image/svg+xml',
    width: 10,
    height: 20,
    sanitized: ['<script>', 'onclick of <path>'],
  })
  const shown = await show()
  expect(parseHarmless(shown.text)).toEqual([
    { name: 'svg', attributes: { viewBox: '0 0 10 20' } },
    { name: 'path', attributes: { d: 'M0 0h1' } },
  ])
  expect(Object(response.body).bytes).toBe(shown.bytes.length)
})

describe('the type comes from the bytes, not from the name', () => {
  test('a PNG named .svg is a PNG', async () => {
    const response = await postForm(pngOf(3, 2), { name: 'logo.svg', type: 'image/svg+xml' })
    expect(response.body).toMatchObject({ content_type: 'image/png', width: 3 })
    expect((await show()).headers.get('content-type')).toBe('image/png')
    expect((await postBare(pngOf(4, 2), 'image/svg+xml')).body).toMatchObject({ width: 4 })
  })

  test('an SVG named .png is sanitised as an SVG', async () => {
    const response = await postForm(svgOf('<script/>'), { name: 'logo.png' })
    expect(response.body).toMatchObject({ content_type: 'image/svg+xml', sanitized: ['<script>'] })
  })

  test('HTML named .png is refused', async () => {
    const html = '<html><script>alert(1)</script></html>'
    expect(errorOf(await postForm(html))).toEqual([415, 'unsupported_image_type', 'file'])
    expect(errorOf(await postBare(html))).toEqual([415, 'unsupported_image_type', 'file'])
  })
})

describe('a logo may have at most 524,288 bytes', () => {
  const oversized = [413, 'logo_too_large', 'file']
  async function* slices(bytes: Buffer) {
    for (let at = 0; at < bytes.length; at += 40_000) yield bytes.subarray(at, at + 40_000)
  }
  /** Without a Content-Length. */
  const streamed = (bytes: Buffer) =>
    new ReadableStream({
      async start(controller) {
        for await (const slice of slices(bytes)) controller.enqueue(slice)
        controller.close()
      },
    })

  test('a PNG at the limit is accepted, one byte more is refused', async () => {
    for (const post of [postBare, postForm, (bytes: Buffer) => postBare(streamed(bytes))]) {
      const accepted = await post(pngOfBytes(bytesMax))
      expect([accepted.status, Object(accepted.body).bytes]).toEqual([200, bytesMax])
      expect((await show()).bytes.length).toBe(bytesMax)
      expect(errorOf(await post(pngOfBytes(bytesMax + 1)))).toEqual(oversized)
    }
  })

  test('an SVG at the limit is accepted, one byte more is refused', async () => {
    const svgOfBytes = (bytes: number) => {
      const smallest = svgOf('<!---->')
      return svgOf(`<!--${'x'.repeat(bytes - smallest.length)}-->`)
    }
    expect(outcome(await postBare(svgOfBytes(bytesMax), 'image/svg+xml'))).toBe('200')
    expect(errorOf(await postBare(svgOfBytes(bytesMax + 1), 'image/svg+xml'))).toEqual(oversized)
    expect(outcome(await postForm(svgOfBytes(bytesMax)))).toBe('200')
    expect(errorOf(await postForm(svgOfBytes(bytesMax + 1)))).toEqual(oversized)
  })

  test('an endless body is refused at the limit', async () => {
    let sent = 0
    const endless = new ReadableStream({
      async pull(controller) {
        sent += 65_536
        controller.enqueue(new Uint8Array(65_536))
        await Bun.sleep(1)
      },
    })
    expect(errorOf(await postBare(endless))).toEqual(oversized)
    expect(sent).toBeLessThan(64 * 1_048_576)
  })

  test('a refused upload changes nothing', async () => {
    await postBare(pngOf(3, 2))
    await postBare(pngOfBytes(bytesMax + 1))
    await postBare('GIF89a')
    await postForm(svgOf('&x;'))
    expect((await show()).bytes).toEqual(Uint8Array.from(pngOf(3, 2)))
  })
})

describe('a body that is not a logo is refused', () => {
  test.each(['application/json', 'text/plain', 'application/octet-stream'])(
    'content type %s',
    async (type) => {
      expect(errorOf(await postBare(pngOf(1, 1), type))).toEqual([
        415,
        'unsupported_image_type',
        'file',
      ])
    },
  )

  test('an empty body', async () => {
    expect(outcome(await postBare(new Uint8Array(0)))).toBe('415 unsupported_image_type')
    expect(outcome(await postForm(new Uint8Array(0)))).toBe('415 unsupported_image_type')
    expect(outcome(await send('admins', 'POST /v1/branding/logo'))).toBe(
      '415 unsupported_image_type',
    )
  })

  test('a form with other fields', async () => {
    expect(errorOf(await postForm(pngOf(1, 1), { field: 'image' }))).toEqual([
      422,
      'unknown_field',
      'image',
    ])
    const both = new FormData()
    both.append('colour', 'red')
    both.append('file', new File([pngOf(1, 1)], 'x.png'))
    const response = await send('admins', 'POST /v1/branding/logo', { body: both })
    expect(errorOf(response)).toEqual([422, 'unknown_field', 'colour'])
    const text = new FormData()
    text.append('file', 'not a file')
    const fileless = await send('admins', 'POST /v1/branding/logo', { body: text })
    expect(errorOf(fileless)).toEqual([422, 'unprocessable', 'file'])
  })

  test('a form with two files', async () => {
    const body = new FormData()
    for (const field of ['file', 'logo']) body.append(field, new File([pngOf(1, 1)], 'x.png'))
    expect(outcome(await send('admins', 'POST /v1/branding/logo', { body }))).toBe(
      '413 request_too_large',
    )
  })

  test('a truncated form', async () => {
    const headers = { 'content-type': 'multipart/form-data; boundary=x' }
    const body = '--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nabc'
    expect(outcome(await send('admins', 'POST /v1/branding/logo', { body, headers }))).toBe(
      '400 invalid_request',
    )
  })
})

test('security headers make the logo inert', async () => {
  await postBare(svgOf('<path d="M0 0h1"/>'), 'image/svg+xml')
  const { headers } = await show()
  const names = [
    'content-security-policy',
    'x-content-type-options',
    'cross-origin-resource-policy',
  ]
  expect(names.map((name) => headers.get(name))).toEqual([
    "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    'nosniff',
    'same-site',
  ])
  expect(headers.get('cache-control')).toBe('no-cache')
  const known = await show({ 'if-none-match': headers.get('etag') ?? '' })
  expect([known.status, known.bytes.length, known.headers.get('etag')]).toEqual([
    304,
    0,
    headers.get('etag'),
  ])
  expect(known.headers.get('content-security-policy')).toContain('sandbox')
})

test('If-Match protects the logo from concurrent changes', async () => {
  const stale = (await show()).headers.get('etag') ?? ''
  await postBare(pngOf(3, 2))
  const headers = { 'if-match': stale }
  const late = await send('admins', 'POST /v1/branding/logo', {
    body: pngOf(4, 2),
    headers: { ...headers, 'content-type': 'image/png' },
  })
  expect(outcome(late)).toBe('412 precondition_failed')
  const removal = await send('admins', 'DELETE /v1/branding/logo', { headers })
  expect(outcome(removal)).toBe('412 precondition_failed')
  const tag = (await show()).headers.get('etag')
  expect([late, removal].map((response) => response.headers.get('etag'))).toEqual([tag, tag])
  expect((await show()).bytes).toEqual(Uint8Array.from(pngOf(3, 2)))
})
