import { describe, expect, test } from 'bun:test'
import { deflateSync } from 'node:zlib'
import { inspectLogo } from '#branding/logo/inspect.ts'
import { AppError } from '#lib/errors.ts'
import {
  pngChunk,
  pngOf,
  svgOf,
  webpCanvas,
  webpChunk,
  webpFrame,
  webpOf,
} from '#test/support/sample-images.ts'

async function inspect(bytes: Uint8Array): Promise<unknown> {
  try {
    const { contentType, width, height } = await inspectLogo(bytes)
    return [contentType, width, height]
  } catch (error) {
    return error instanceof AppError ? `${error.status} ${error.wireCode}` : error
  }
}

const invalid = '422 invalid_image'

describe('PNG', () => {
  const valid: [string, Buffer, [number, number]][] = [
    ['one pixel', pngOf(1, 1), [1, 1]],
    ['4096 × 4096 pixels', pngOf(4_096, 4_096, { colorType: 0, bits: 1 }), [4_096, 4_096]],
    ['one-bit grey', pngOf(3, 2, { colorType: 0, bits: 1 }), [3, 2]],
    [
      'palette',
      pngOf(3, 2, { colorType: 3, bits: 8, extra: [pngChunk('PLTE', new Uint8Array(3))] }),
      [3, 2],
    ],
    ['interlaced with alpha', pngOf(3, 2, { colorType: 6, bits: 16, interlace: 1 }), [3, 2]],
    ['a text chunk', pngOf(3, 2, { extra: [pngChunk('tEXt', Buffer.from('a\0b'))] }), [3, 2]],
  ]
  test.each(valid)('%s is accepted', async (_, bytes, size) => {
    expect(await inspect(bytes)).toEqual(['image/png', ...size])
  })

  const whole = pngOf(3, 2)
  const damagedAt = (offset: number) => {
    const copy = Buffer.from(whole)
    copy.writeUInt8(copy.readUInt8(offset) ^ 1, offset)
    return copy
  }
  const refused: [string, Buffer][] = [
    ['zero width', pngOf(0, 1)],
    ['zero height', pngOf(1, 0)],
    ['4097 pixels wide', pngOf(4_097, 1)],
    ['4097 pixels high', pngOf(1, 4_097)],
    ['4096 × 4097 pixels', pngOf(4_096, 4_097, { data: [pngChunk('IDAT')] })],
    ['4294967295 pixels wide', pngOf(0xffffffff, 1, { data: [pngChunk('IDAT')] })],
    ['an unknown colour type', pngOf(1, 1, { colorType: 1 })],
    ['an unknown bit depth', pngOf(1, 1, { bits: 4 })],
    ['an unknown interlace method', pngOf(1, 1, { interlace: 2 })],
    ['a missing palette', pngOf(1, 1, { colorType: 3 })],
    ['only a signature', whole.subarray(0, 8)],
    ['a missing last byte', whole.subarray(0, -1)],
    ['truncated image data', whole.subarray(0, -14)],
    ['missing pixels', pngOf(100, 100, { data: [pngChunk('IDAT', deflateSync('few'))] })],
    ['a missing IEND', pngOf(1, 1, { end: Buffer.alloc(0) })],
    ['a missing IDAT', pngOf(1, 1, { data: [] })],
    ['two headers', pngOf(1, 1, { extra: [pngChunk('IHDR', new Uint8Array(13))] })],
    ['a damaged header', damagedAt(18)],
    ['damaged image data', damagedAt(45)],
    ['appended data', Buffer.concat([whole, Buffer.from('<script>')])],
    ['an appended image', Buffer.concat([whole, whole])],
    ['a chunk longer than the file', pngOf(1, 1, { extra: [Buffer.from('ffffffff00', 'hex')] })],
  ]
  test.each(refused)('%s is refused', async (_, bytes) => {
    expect(await inspect(bytes)).toBe(invalid)
  })
})

describe('WebP', async () => {
  // From another encoder: one pixel, lossy and lossless.
  const lossy = Buffer.from('UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA', 'base64')
  const lossless = Buffer.from('UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==', 'base64')
  const frame = lossy.subarray(12)
  const animationFrame = webpChunk('ANMF', Buffer.concat([Buffer.alloc(16), frame]))
  const animation = [webpChunk('ANIM', new Uint8Array(6)), animationFrame, animationFrame]
  const valid: [string, Buffer, [number, number]][] = [
    ['lossy', lossy, [1, 1]],
    ['lossless', lossless, [1, 1]],
    ['4096 lossy pixels', webpOf(await webpFrame(4_096, 7)), [4_096, 7]],
    ['4096 lossless pixels', webpOf(await webpFrame(7, 4_096, { lossless: true })), [7, 4_096]],
    ['extended', webpOf(webpCanvas(40, 30), await webpFrame(40, 30, { lossless: true })), [40, 30]],
    [
      'metadata of an odd length',
      webpOf(webpCanvas(1, 1), frame, webpChunk('EXIF', new Uint8Array(5))),
      [1, 1],
    ],
    ['animated', webpOf(webpCanvas(4, 3, { isAnimated: true }), ...animation), [4, 3]],
  ]
  test.each(valid)('%s is accepted', async (_, bytes, size) => {
    expect(await inspect(bytes)).toEqual(['image/webp', ...size])
  })

  const tooWide = webpCanvas(4_097, 1, { isAnimated: true })
  const refused: [string, Buffer][] = [
    ['only a header', webpOf()],
    ['a missing last byte', lossy.subarray(0, -1)],
    ['appended data', Buffer.concat([lossy, Buffer.from('<script>')])],
    ['4097 pixels wide', webpOf(await webpFrame(4_097, 1))],
    ['4097 pixels high', webpOf(await webpFrame(1, 4_097, { lossless: true }))],
    ['a canvas of 4097 pixels', webpOf(webpCanvas(4_097, 1), frame)],
    ['an animation 4097 pixels wide', webpOf(tooWide, ...animation)],
    ['an animation without frames', webpOf(webpCanvas(1, 1, { isAnimated: true }))],
    ['a frame larger than its canvas', webpOf(webpCanvas(1, 1), await webpFrame(9_999, 1))],
    ['only a canvas', webpOf(webpCanvas(1, 1))],
    ['metadata first', webpOf(webpChunk('EXIF', new Uint8Array(4)), frame)],
    ['an invalid lossy frame', webpOf(webpChunk('VP8 ', new Uint8Array(20)))],
    ['a truncated lossy frame', webpOf(webpChunk('VP8 ', new Uint8Array(4)))],
    ['an invalid lossless frame', webpOf(webpChunk('VP8L', new Uint8Array(20)))],
    ['a truncated canvas', webpOf(webpChunk('VP8X', new Uint8Array(4)), frame)],
    ['a chunk longer than the file', webpOf(frame.subarray(0, 12))],
    ['an incomplete last chunk', webpOf(frame, Buffer.from('EXI'))],
  ]
  test.each(refused)('%s is refused', async (_, bytes) => {
    expect(await inspect(bytes)).toBe(invalid)
  })
})

describe('other types', () => {
  const others: [string, Uint8Array][] = [
    ['JPEG', Buffer.from('ffd8ffe000104a464946', 'hex')],
    ['GIF', Buffer.from('GIF89a\x01\0\x01\0')],
    ['RIFF audio', Buffer.from('RIFF\x04\0\0\0WAVE')],
    ['half a signature', pngOf(1, 1).subarray(0, 7)],
    ['a compressed SVG', Bun.gzipSync(svgOf(''))],
    ['an SVG in UTF-16', Buffer.from(`\ufeff${svgOf('')}`, 'utf16le')],
    ['an SVG in Latin-1', Buffer.from(svgOf('<text>ä</text>'), 'latin1')],
  ]
  test.each(others)('%s is refused', async (_, bytes) => {
    expect(await inspect(bytes)).toBe('415 unsupported_image_type')
  })

  test('an SVG may have a byte-order mark', async () => {
    expect(await inspect(Buffer.from(`\ufeff ${svgOf('')}`))).toEqual(['image/svg+xml', 10, 20])
  })
})
