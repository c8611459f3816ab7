import { describe, expect, test } from 'bun:test'
import { inspectLogo } from '#branding/logo/inspect.ts'
import { AppError } from '#lib/errors.ts'
import {
  canvasChunk,
  losslessChunk,
  lossyChunk,
  pngChunk,
  pngOf,
  svgOf,
  webpChunk,
  webpOf,
} from '#test/support/pictures.ts'

/** Pictures are known by their bytes, and are whole. */

function judge(bytes: Uint8Array): unknown {
  try {
    const { contentType, width, height } = inspectLogo(bytes)
    return [contentType, width, height]
  } catch (error) {
    return error instanceof AppError ? `${error.status} ${error.wireCode}` : error
  }
}

const invalid = '422 invalid_image'

describe('a PNG', () => {
  const good: [string, Buffer, [number, number]][] = [
    ['of one pixel', pngOf(1, 1), [1, 1]],
    ['of 4096 pixels each way', pngOf(4_096, 4_096), [4_096, 4_096]],
    ['in grey, with one bit', pngOf(3, 2, { colorType: 0, bits: 1 }), [3, 2]],
    [
      'with a palette',
      pngOf(3, 2, { colorType: 3, bits: 8, extra: [pngChunk('PLTE', new Uint8Array(3))] }),
      [3, 2],
    ],
    [
      'with transparency, interlaced',
      pngOf(3, 2, { colorType: 6, bits: 16, interlace: 1 }),
      [3, 2],
    ],
    ['with notes', pngOf(3, 2, { extra: [pngChunk('tEXt', Buffer.from('a\0b'))] }), [3, 2]],
  ]
  test.each(good)('%s is taken', (_, bytes, size) => {
    expect(judge(bytes)).toEqual(['image/png', ...size])
  })

  const whole = pngOf(3, 2)
  const damaged = Buffer.from(whole)
  damaged.writeUInt8(9, 18)
  const bad: [string, Buffer][] = [
    ['without width', pngOf(0, 1)],
    ['without height', pngOf(1, 0)],
    ['that is too wide', pngOf(4_097, 1)],
    ['that is too high', pngOf(1, 4_097)],
    ['that is much too wide', pngOf(0xffffffff, 1)],
    ['of a colour type that there is not', pngOf(1, 1, { colorType: 1 })],
    ['of bits that there are not', pngOf(1, 1, { bits: 4 })],
    ['of an order that there is not', pngOf(1, 1, { interlace: 2 })],
    ['that lacks its palette', pngOf(1, 1, { colorType: 3 })],
    ['of a signature alone', whole.subarray(0, 8)],
    ['that is cut', whole.subarray(0, -1)],
    ['that is cut in its data', whole.subarray(0, -14)],
    ['without its end', pngOf(1, 1, { end: Buffer.alloc(0) })],
    ['without data', pngOf(1, 1, { data: [] })],
    ['with two headers', pngOf(1, 1, { extra: [pngChunk('IHDR', new Uint8Array(13))] })],
    ['that is damaged', damaged],
    ['with something behind its end', Buffer.concat([whole, Buffer.from('<script>')])],
    ['with another picture behind its end', Buffer.concat([whole, whole])],
    [
      'whose chunk says that it is endless',
      pngOf(1, 1, { extra: [Buffer.from('ffffffff00', 'hex')] }),
    ],
  ]
  test.each(bad)('%s is refused', (_, bytes) => {
    expect(judge(bytes)).toBe(invalid)
  })
})

describe('a WebP', () => {
  // Made by real encoders: one pixel, lossy and lossless.
  const lossy = Buffer.from('UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA', 'base64')
  const lossless = Buffer.from('UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==', 'base64')
  const good: [string, Buffer, [number, number]][] = [
    ['lossy', lossy, [1, 1]],
    ['lossless', lossless, [1, 1]],
    ['of 4096 lossy pixels', webpOf(lossyChunk(4_096, 7)), [4_096, 7]],
    ['of 4096 lossless pixels', webpOf(losslessChunk(7, 4_096)), [7, 4_096]],
    ['in parts', webpOf(canvasChunk(40, 30), losslessChunk(40, 30)), [40, 30]],
    [
      'with notes of an odd length',
      webpOf(canvasChunk(4, 3), lossyChunk(4, 3), webpChunk('EXIF', new Uint8Array(5))),
      [4, 3],
    ],
  ]
  test.each(good)('%s is taken', (_, bytes, size) => {
    expect(judge(bytes)).toEqual(['image/webp', ...size])
  })

  const bad: [string, Buffer][] = [
    ['of a head alone', webpOf()],
    ['that is cut', lossy.subarray(0, -1)],
    ['with something behind its end', Buffer.concat([lossy, Buffer.from('<script>')])],
    ['without width', webpOf(lossyChunk(0, 1))],
    ['that is too wide', webpOf(lossyChunk(4_097, 1))],
    ['that is too high', webpOf(losslessChunk(1, 4_097))],
    ['whose canvas is too wide', webpOf(canvasChunk(4_097, 1), lossyChunk(1, 1))],
    ['whose picture is too wide for any canvas', webpOf(canvasChunk(1, 1), lossyChunk(9_999, 1))],
    ['of a canvas alone', webpOf(canvasChunk(1, 1))],
    ['that begins with notes', webpOf(webpChunk('EXIF', new Uint8Array(4)), lossyChunk(1, 1))],
    ['whose frame is none', webpOf(webpChunk('VP8 ', new Uint8Array(20)))],
    ['whose frame is cut', webpOf(webpChunk('VP8 ', new Uint8Array(4)))],
    ['whose lossless frame is none', webpOf(webpChunk('VP8L', new Uint8Array(20)))],
    ['whose canvas is cut', webpOf(webpChunk('VP8X', new Uint8Array(4)), lossyChunk(1, 1))],
    ['whose chunk is longer than the file', webpOf(lossyChunk(1, 1).subarray(0, 12))],
    ['that ends in the middle of a chunk', webpOf(lossyChunk(1, 1), Buffer.from('EXI'))],
  ]
  test.each(bad)('%s is refused', (_, bytes) => {
    expect(judge(bytes)).toBe(invalid)
  })
})

describe('what is neither', () => {
  const others: [string, Uint8Array][] = [
    ['a JPEG', Buffer.from('ffd8ffe000104a464946', 'hex')],
    ['a GIF', Buffer.from('GIF89a\x01\0\x01\0')],
    ['a RIFF of sounds', Buffer.from('RIFF\x04\0\0\0WAVE')],
    ['half a signature', pngOf(1, 1).subarray(0, 7)],
    ['a packed SVG', Bun.gzipSync(svgOf(''))],
    ['an SVG in UTF-16', Buffer.from(`\ufeff${svgOf('')}`, 'utf16le')],
    ['an SVG in Latin-1', Buffer.from(svgOf('<text>ä</text>'), 'latin1')],
  ]
  test.each(others)('%s is refused', (_, bytes) => {
    expect(judge(bytes)).toBe('415 unsupported_image_type')
  })

  test('an SVG may say that it is UTF-8', () => {
    expect(judge(Buffer.from(`\ufeff ${svgOf('')}`))).toEqual(['image/svg+xml', 10, 20])
  })
})
