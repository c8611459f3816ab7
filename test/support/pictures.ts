import { deflateSync } from 'node:zlib'

/** Whole pictures, as small as they can be, and as broken as they are asked to be. */

type PngOptions = {
  /** Of all it may say: a true-colour picture. */
  colorType?: number
  bits?: number
  interlace?: number
  /** Chunks before the picture data. */
  extra?: readonly Buffer[]
  data?: readonly Buffer[]
  end?: Buffer
}

const pngSignature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

export function pngOf(width: number, height: number, options: PngOptions = {}): Buffer {
  const { colorType = 2, bits = 8, interlace = 0, extra = [], end = pngChunk('IEND') } = options
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head.set([bits, colorType, 0, 0, interlace], 8)
  const { data = [pngChunk('IDAT', deflateSync(Buffer.alloc(4)))] } = options
  return Buffer.concat([pngSignature, pngChunk('IHDR', head), ...extra, ...data, end])
}

export function pngChunk(type: string, data: Uint8Array = new Uint8Array(0)): Buffer {
  const chunk = Buffer.alloc(data.length + 12)
  chunk.writeUInt32BE(data.length, 0)
  chunk.write(type, 4, 'latin1')
  chunk.set(data, 8)
  chunk.writeUInt32BE(Bun.hash.crc32(chunk.subarray(4, -4)), data.length + 8)
  return chunk
}

/** A PNG of exactly so many bytes. */
export function pngOfBytes(bytes: number): Buffer {
  const bare = pngOf(1, 1).length
  return pngOf(1, 1, { extra: [pngChunk('prIv', new Uint8Array(bytes - bare - 12))] })
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
  const head = Buffer.alloc(12)
  head.write('RIFF', 0, 'latin1')
  head.writeUInt32LE(body.length + 4, 4)
  head.write('WEBP', 8, 'latin1')
  return Buffer.concat([head, body])
}

export function lossyChunk(width: number, height: number): Buffer {
  const data = Buffer.alloc(20)
  data.set([0x30, 0x01, 0x00, 0x9d, 0x01, 0x2a])
  data.writeUInt16LE(width, 6)
  data.writeUInt16LE(height, 8)
  return webpChunk('VP8 ', data)
}

export function losslessChunk(width: number, height: number): Buffer {
  const data = Buffer.alloc(13)
  data[0] = 0x2f
  data.writeUInt32LE(((width - 1) | ((height - 1) << 14)) >>> 0, 1)
  return webpChunk('VP8L', data)
}

export function canvasChunk(width: number, height: number): Buffer {
  const data = Buffer.alloc(10)
  data.writeUIntLE(width - 1, 4, 3)
  data.writeUIntLE(height - 1, 7, 3)
  return webpChunk('VP8X', data)
}

export function svgOf(inside: string, attributes = ''): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 10 20" ${attributes}>${inside}</svg>`
}
