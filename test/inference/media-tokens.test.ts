import { describe, expect, test } from 'bun:test'
import { imageSizeOf } from '#inference/image-size.ts'
import { mediaTokens } from '#inference/token-estimate.ts'
import { gif, jpeg, png, toDataUrl, webp } from '#test/support/image-headers.ts'

describe('the size of an image is read from its header', () => {
  test.each([
    ['PNG', png(640, 480), [640, 480]],
    ['GIF', gif(320, 200), [320, 200]],
    ['JPEG', jpeg(1024, 768), [1024, 768]],
    ['progressive JPEG', jpeg(1024, 768, { frame: 0xc2 }), [1024, 768]],
    ['JPEG of the last kind of frame', jpeg(20, 30, { frame: 0xcf }), [20, 30]],
    ['JPEG behind a long preview', jpeg(4000, 3000, { previewBytes: 65_000 }), [4000, 3000]],
    ['JPEG with padded markers', jpeg(20, 30, { padding: 3 }), [20, 30]],
    ['lossy WebP', webp('VP8 ', 550, 368), [550, 368]],
    ['lossless WebP', webp('VP8L', 386, 395), [386, 395]],
    ['extended WebP', webp('VP8X', 2000, 1500), [2000, 1500]],
  ])('%s', (_name, bytes, [width, height]) => {
    expect(imageSizeOf(toDataUrl(bytes))).toEqual({ width: width ?? 0, height: height ?? 0 })
  })

  test.each([
    ['a link', 'https://pictures.example/cat.png'],
    ['no image', toDataUrl(Buffer.from('a text that says that it is an image, and is none'))],
    ['a cut header', toDataUrl(png(640, 480).subarray(0, 18))],
    ['a JPEG without a frame', toDataUrl(jpeg(10, 10).subarray(0, 20))],
    ['a width of nothing', toDataUrl(png(0, 480))],
    ['a height of nothing', toDataUrl(png(640, 0))],
    ['a JPEG with a table in the range of frames', toDataUrl(jpeg(9, 9, { frame: 0xc8 }))],
    ['a JPEG with another extension', toDataUrl(jpeg(9, 9, { frame: 0xcc }))],
    ['a JPEG with a marker beyond frames', toDataUrl(jpeg(9, 9, { frame: 0xd0 }))],
    ['a WAV file', toDataUrl(Buffer.from('RIFF0000WAVEVP8 '.padEnd(40, 'x')))],
    [
      'a WebP file without its container',
      toDataUrl(Buffer.from('RIFX0000WEBPVP8 '.padEnd(40, 'x'))),
    ],
    ['data that are not base64', 'data:image/svg+xml,%3Csvg%3E'],
    ['nothing', ''],
  ])('%s is unknown', (_name, url) => {
    expect(imageSizeOf(url)).toBeNull()
  })

  test('truncated headers cause no error', () => {
    for (const whole of [png(9, 9), gif(9, 9), jpeg(9, 9), webp('VP8X', 9, 9)]) {
      for (let length = 0; length < whole.length; length++) {
        expect(() => imageSizeOf(toDataUrl(whole.subarray(0, length)))).not.toThrow()
      }
    }
  })
})

describe('the tokens of an image', () => {
  const cost = (url: string, detail: string | null = null) =>
    mediaTokens({ type: 'image', url, detail })

  test('are one per 750 pixels, up to a maximum', () => {
    expect(cost(toDataUrl(png(1, 1)))).toBe(1)
    expect(cost(toDataUrl(png(750, 100)))).toBe(100)
    expect(cost(toDataUrl(png(1000, 750)))).toBe(1_000)
    expect(cost(toDataUrl(jpeg(8000, 6000)))).toBe(1_600)
  })

  test('are 1,500 for an unknown size, and few for low detail', () => {
    expect(cost('https://pictures.example/cat.png')).toBe(1_500)
    expect(cost(toDataUrl(png(1000, 750)), 'low')).toBe(85)
  })
})

test('a file counts by its length, also as a data URL', () => {
  const file = { type: 'file', filename: null } as const
  const data = `data:application/pdf;base64,${'A'.repeat(40_000)}`
  const costs = mediaTokens({ ...file, data, url: null })
  expect(costs).toBeWithin(1_500, 3_000)
  expect(mediaTokens({ ...file, data: null, url: data })).toBe(costs)
  expect(mediaTokens({ ...file, data: null, url: 'https://files.example/a.pdf' })).toBe(1_500)
})
