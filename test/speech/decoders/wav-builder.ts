/** Builds WAV files with the peculiarities of real recorders. */
export type WavShape = {
  readonly format?: number
  readonly channels?: number
  readonly rateHz?: number
  readonly bits?: number
  /** Appends the channel mask and GUID of an extensible format. */
  readonly extensible?: boolean
  readonly before?: readonly Chunk[]
  readonly after?: readonly Chunk[]
  readonly dataSize?: number
  readonly riffSize?: number
}

type Chunk = { readonly name: string; readonly content: Uint8Array }

export function wavFile(sound: Uint8Array, shape: WavShape = {}): Uint8Array {
  const chunks = [
    ...(shape.before ?? []).map((chunk) => chunkBytes(chunk)),
    chunkBytes({ name: 'fmt ', content: formatChunk(shape) }),
    chunkBytes({ name: 'data', content: sound }, shape.dataSize),
    ...(shape.after ?? []).map((chunk) => chunkBytes(chunk)),
  ]
  const body = Buffer.concat(chunks)
  const head = Buffer.alloc(12)
  head.write('RIFF', 0, 'latin1')
  head.writeUInt32LE(shape.riffSize ?? body.length + 4, 4)
  head.write('WAVE', 8, 'latin1')
  return new Uint8Array(Buffer.concat([head, body]))
}

/** RF64, with the audio size in a ds64 chunk. */
export function rf64File(sound: Uint8Array, soundBytes: bigint, shape: WavShape = {}): Uint8Array {
  const sizes = Buffer.alloc(28)
  sizes.writeBigUInt64LE(soundBytes, 8)
  const before = [{ name: 'ds64', content: sizes }, ...(shape.before ?? [])]
  const unknown = 0xffffffff
  const file = wavFile(sound, { ...shape, before, dataSize: unknown, riffSize: unknown })
  file.set(Buffer.from('RF64'), 0)
  return file
}

function formatChunk(shape: WavShape): Uint8Array {
  const { format = 1, channels = 1, rateHz = 16_000, bits = 16, extensible = false } = shape
  const frameBytes = Math.ceil(bits / 8) * channels
  const chunk = Buffer.alloc(extensible ? 40 : 16)
  chunk.writeUInt16LE(extensible ? 0xfffe : format, 0)
  chunk.writeUInt16LE(channels, 2)
  chunk.writeUInt32LE(rateHz, 4)
  chunk.writeUInt32LE((rateHz * frameBytes) >>> 0, 8)
  chunk.writeUInt16LE(frameBytes, 12)
  chunk.writeUInt16LE(bits, 14)
  if (extensible) {
    chunk.writeUInt16LE(22, 16)
    chunk.writeUInt16LE(bits, 18)
    chunk.writeUInt16LE(format, 24)
    chunk.write('000000001000800000aa00389b71', 26, 'hex')
  }
  return new Uint8Array(chunk)
}

function chunkBytes({ name, content }: Chunk, size = content.length): Uint8Array {
  const head = Buffer.alloc(8)
  head.write(name, 0, 'latin1')
  head.writeUInt32LE(size, 4)
  return Buffer.concat([head, content, Buffer.alloc(content.length % 2)])
}
