import { checkSides, invalidImage } from './image.ts'

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
/** Length, type and checksum of a chunk. */
const chunkFrameBytes = 12
const headBytes = 13
/** Which numbers of bits go with each colour type. */
const bitDepths: Readonly<Record<number, readonly number[]>> = {
  0: [1, 2, 4, 8, 16],
  2: [8, 16],
  3: [1, 2, 4, 8],
  4: [8, 16],
  6: [8, 16],
}
const paletteType = 3

export function isPng(bytes: Buffer): boolean {
  return bytes.subarray(0, signature.length).equals(signature)
}

/** Walks over all chunks; throws `invalid_image` where they are not those of one whole picture. */
export function readPng(bytes: Buffer): { width: number; height: number } {
  const types = new Set<string>()
  let size: { width: number; height: number } | null = null
  let end = signature.length
  for (const { type, data, next } of readChunks(bytes)) {
    if ((type === 'IHDR') !== (size === null)) throw broken('must begin with one header')
    size ??= readHead(data)
    types.add(type)
    end = next
    if (type === 'IEND') break
  }
  if (size === null || !types.has('IDAT') || !types.has('IEND')) throw broken('is not complete')
  if (end !== bytes.length) throw broken('is followed by something else')
  if (bytes.readUInt8(25) === paletteType && !types.has('PLTE')) throw broken('lacks its palette')
  return size
}

type Chunk = { readonly type: string; readonly data: Buffer; readonly next: number }

function* readChunks(bytes: Buffer): Generator<Chunk, void, void> {
  for (let at = signature.length; at + chunkFrameBytes <= bytes.length; ) {
    const length = bytes.readUInt32BE(at)
    const next = at + chunkFrameBytes + length
    if (next > bytes.length) throw broken('ends too early')
    if (Bun.hash.crc32(bytes.subarray(at + 4, next - 4)) !== bytes.readUInt32BE(next - 4)) {
      throw broken('is damaged: a checksum is not right')
    }
    yield {
      type: bytes.toString('latin1', at + 4, at + 8),
      data: bytes.subarray(at + 8, next - 4),
      next,
    }
    at = next
  }
}

function readHead(data: Buffer): { width: number; height: number } {
  if (data.length !== headBytes) throw broken('has no header')
  const [width, height] = [data.readUInt32BE(0), data.readUInt32BE(4)]
  const [bits, color, compression, filter, interlace] = data.subarray(8)
  const isKnown = bitDepths[color ?? -1]?.includes(bits ?? -1) === true
  if (!isKnown || compression !== 0 || filter !== 0 || (interlace ?? 2) > 1) {
    throw broken('has a header that says nothing')
  }
  checkSides(width, height)
  return { width, height }
}

function broken(how: string) {
  return invalidImage(`The PNG ${how}.`)
}
