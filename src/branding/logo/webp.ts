import { checkSides, invalidImage } from './image.ts'

type Size = { readonly width: number; readonly height: number }

const fileHeadBytes = 12
const chunkHeadBytes = 8
/** What every key frame of VP8 has behind its tag. */
const frameStart = 0x2a019d
const losslessMark = 0x2f

export function isWebp(bytes: Buffer): boolean {
  return (
    bytes.length >= fileHeadBytes &&
    bytes.toString('latin1', 0, 4) === 'RIFF' &&
    bytes.toString('latin1', 8, 12) === 'WEBP'
  )
}

/** Walks over all chunks; throws `invalid_image` where they are not those of one whole picture. */
export function readWebp(bytes: Buffer): Size {
  if (bytes.readUInt32LE(4) + chunkHeadBytes !== bytes.length) {
    throw broken('is not as long as it says')
  }
  const chunks = [...readChunks(bytes)]
  const [first] = chunks
  const size = first === undefined ? null : sizeOf(first)
  if (size === null) throw broken('begins with no picture')
  const hasPicture = chunks.some(({ type }) => ['VP8 ', 'VP8L', 'ANMF'].includes(type))
  if (!hasPicture) throw broken('has no picture')
  for (const { width, height } of chunks.flatMap((chunk) => sizeOf(chunk) ?? [])) {
    checkSides(width, height)
  }
  return size
}

type Chunk = { readonly type: string; readonly data: Buffer }

function* readChunks(bytes: Buffer): Generator<Chunk, void, void> {
  let at = fileHeadBytes
  while (at + chunkHeadBytes <= bytes.length) {
    const length = bytes.readUInt32LE(at + 4)
    const start = at + chunkHeadBytes
    if (start + length > bytes.length) throw broken('ends too early')
    const type = bytes.toString('latin1', at, at + 4)
    yield { type, data: bytes.subarray(start, start + length) }
    // Chunks begin at even places.
    at = start + length + (length % 2)
  }
  if (at !== bytes.length) throw broken('ends in the middle of a chunk')
}

/** Lossy, lossless, or a head for several parts; null: a chunk that has no size. */
function sizeOf({ type, data }: Chunk): Size | null {
  switch (type) {
    case 'VP8 ':
      if (data.length < 10 || data.readUIntLE(3, 3) !== frameStart) throw broken('is damaged')
      return { width: data.readUInt16LE(6) & 0x3fff, height: data.readUInt16LE(8) & 0x3fff }
    case 'VP8L': {
      if (data.length < 5 || data.readUInt8(0) !== losslessMark) throw broken('is damaged')
      const bits = data.readUInt32LE(1)
      return { width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1 }
    }
    case 'VP8X':
      if (data.length < 10) throw broken('is damaged')
      return { width: data.readUIntLE(4, 3) + 1, height: data.readUIntLE(7, 3) + 1 }
    default:
      return null
  }
}

function broken(how: string) {
  return invalidImage(`The WebP ${how}.`)
}
