import { deflateSync } from 'node:zlib'

/** Small valid images, and the parts of damaged ones. */

type PngOptions = {
  /** 2: true colour. */
  colorType?: number
  bits?: number
  interlace?: number
  /** Chunks before the image data. */
  extra?: readonly Buffer[]
  data?: readonly Buffer[]
  end?: Buffer
}

const pngSignature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const channelsOfColorType: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 }

export function pngOf(width: number, height: number, options: PngOptions = {}): Buffer {
  const { colorType = 2, bits = 8, interlace = 0, extra = [], end = pngChunk('IEND') } = options
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([bits, colorType, 0, 0, interlace], 8)
  const bitsPerPixel = bits * (channelsOfColorType[colorType] ?? 1)
  const { data = [pngChunk('IDAT', blackPixels(width, height, { bitsPerPixel, interlace }))] } =
    options
  return Buffer.concat([pngSignature, pngChunk('IHDR', header), ...extra, ...data, end])
}

/** Column and row of the first pixel of each Adam7 pass, and the distances to the next ones. */
const adam7Passes = [
  ...[[0, 0, 8, 8] as const, [4, 0, 8, 8] as const, [0, 4, 4, 8] as const, [2, 0, 4, 4] as const],
  ...[[0, 2, 2, 4] as const, [1, 0, 2, 2] as const, [0, 1, 1, 2] as const],
]

/** Each row has a byte for its filter. */
function blackPixels(
  width: number,
  height: number,
  { bitsPerPixel, interlace }: { bitsPerPixel: number; interlace: number },
): Buffer {
  const passes = interlace === 1 ? adam7Passes : [[0, 0, 1, 1] as const]
  const sizes = passes.map(([x, y, dx, dy]) => {
    const [columns, rows] = [Math.ceil((width - x) / dx), Math.ceil((height - y) / dy)]
    return columns > 0 && rows > 0 ? rows * (1 + Math.ceil((columns * bitsPerPixel) / 8)) : 0
  })
  const bytes = sizes.reduce((sum, size) => sum + size, 0)
  return deflateSync(Buffer.alloc(Math.min(bytes, 64 * 1_048_576)))
}

export function pngChunk(type: string, data: Uint8Array = new Uint8Array(0)): Buffer {
  const chunk = Buffer.alloc(data.length + 12)
  chunk.writeUInt32BE(data.length, 0)
  chunk.write(type, 4, 'latin1')
  chunk.set(data, 8)
  chunk.writeUInt32BE(Bun.hash.crc32(chunk.subarray(4, -4)), data.length + 8)
  return chunk
}

/** A PNG of exactly this many bytes. */
export function pngOfBytes(bytes: number): Buffer {
  const smallest = pngOf(1, 1).length
  return pngOf(1, 1, { extra: [pngChunk('prIv', new Uint8Array(bytes - smallest - 12))] })
}

export function webpChunk(type: string, data: Uint8Array): Buffer {
  const chunk = Buffer.alloc(8 + data.length + (data.length % 2))
  chunk.write(type, 0, 'latin1')
  chunk.writeUInt32LE(data.length, 4)
  chunk.set(data, 8)
  return chunk
}

export function webpOf(...chunks: readonly Buffer[]): Buffer {
  const body = Buffer.concat(chunks)
  const header = Buffer.alloc(12)
  header.write('RIFF', 0, 'latin1')
  header.writeUInt32LE(body.length + 4, 4)
  header.write('WEBP', 8, 'latin1')
  return Buffer.concat([header, body])
}

/** The `VP8 ` or `VP8L` chunk of an encoded image. */
export async function webpFrame(
  width: number,
  height: number,
  { lossless = false } = {},
): Promise<Buffer> {
  const webp = await new Bun.Image(pngOf(width, height)).webp({ lossless }).buffer()
  return webp.subarray(12)
}

const animationFlag = 0x02

/** The `VP8X` chunk: the size of the canvas. */
export function webpCanvas(width: number, height: number, { isAnimated = false } = {}): Buffer {
  const data = Buffer.alloc(10)
  data[0] = isAnimated ? animationFlag : 0
  data.writeUIntLE(width - 1, 4, 3)
  data.writeUIntLE(height - 1, 7, 3)
  return webpChunk('VP8X', data)
}

export function svgOf(content: string, attributes = ''): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 10 20" ${attributes}>${content}</svg>`
}
