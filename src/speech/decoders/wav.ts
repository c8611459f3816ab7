import { createByteReader } from './byte-reader.ts'
import { AudioError, type FormatDecoder } from './decoder.ts'
import { createPcmDecoder, type SampleFormat, sampleFormats } from './pcm.ts'
import { requireSupportedRate, type SampleOutput } from './sample-output.ts'

/** Chunks before the audio: lists, pictures, notes. */
const headerBytesMax = 1_048_576
const formatBytesMax = 1024

/** Written by recorders that do not know the size in advance. */
const unknownSizes = new Set([0, 0xffffffff])

/** RIFF and RF64. Chunks after the audio are skipped. */
export function createWavDecoder(output: SampleOutput): FormatDecoder {
  const reader = createByteReader()
  let headerBytes = 0
  /** The RIFF header, which was checked already. */
  let skipBytes = 12
  let format: WavFormat | null = null
  let longDataBytes: number | null = null
  let audio: FormatDecoder | null = null
  let audioBytesLeft = Number.POSITIVE_INFINITY

  /** Consumes bytes of the header; false while some of them have not arrived. */
  const skip = (bytes: number): boolean => {
    const dropped = reader.drop(bytes)
    headerBytes += dropped
    if (headerBytes > headerBytesMax) {
      throw damagedWav(`the audio does not start within ${headerBytesMax} bytes`)
    }
    skipBytes = bytes - dropped
    return skipBytes === 0
  }

  /** Reads one part of the header; false when more bytes are needed. */
  const readHeader = (): boolean => {
    if (skipBytes > 0) return skip(skipBytes)
    const head = reader.peek(8)
    if (head === null) return false
    const name = String.fromCharCode(...head.subarray(0, 4))
    const size = new DataView(head.buffer, head.byteOffset).getUint32(4, true)
    if (name === 'data') return startAudio(size)
    // An odd chunk includes a padding byte.
    const chunkBytes = 8 + size + (size % 2)
    if (name === 'fmt ' || name === 'ds64') {
      if (size > formatBytesMax) throw damagedWav(`its chunk ${name.trim()} is too long`)
      const chunk = reader.peek(chunkBytes)?.subarray(8, 8 + size)
      if (chunk === undefined) return false
      if (name === 'fmt ') format = readWavFormat(chunk)
      else longDataBytes = readLongDataBytes(chunk)
    }
    return skip(chunkBytes)
  }

  const startAudio = (size: number): boolean => {
    if (format === null) throw damagedWav('its audio precedes its format')
    skip(8)
    const bytes = size === 0xffffffff && longDataBytes !== null ? longDataBytes : size
    if (!unknownSizes.has(bytes)) audioBytesLeft = bytes
    audio = createPcmDecoder(format.format, format.rateHz, format.channels, output)
    return true
  }

  return {
    *decode(bytes) {
      reader.accept(bytes)
      while (audio === null) if (!readHeader()) return
      const taken = Math.min(audioBytesLeft, reader.available)
      const samples = reader.peek(taken)
      if (samples === null) return
      audioBytesLeft -= taken
      reader.drop(reader.available)
      yield* audio.decode(samples)
    },
    end() {
      if (audio !== null || headerBytes + reader.available === 0) return []
      throw new AudioError('bad_audio', 'The WAV stream ends before its audio starts.')
    },
  }
}

/** The 64-bit audio size of RF64. */
function readLongDataBytes(chunk: Uint8Array): number {
  if (chunk.length < 16) throw damagedWav('its ds64 chunk is too short')
  const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  return Number(view.getBigUint64(8, true))
}

const channelsMax = 32

const extensible = 0xfffe

/** The sample formats by format tag and bytes of a sample. */
const formats: Readonly<Record<number, Readonly<Record<number, SampleFormat>>>> = {
  1: { 1: 'uint8', 2: 'int16', 3: 'int24', 4: 'int32' },
  3: { 4: 'float32', 8: 'float64' },
  6: { 1: 'alaw' },
  7: { 1: 'mulaw' },
}

/** The end of an extensible format's GUID, which starts with a format tag. */
const guidTail = [
  0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x80, 0x00, 0x00, 0xaa, 0x00, 0x38, 0x9b, 0x71,
]

type WavFormat = ReturnType<typeof readWavFormat>

/** The contents of a `fmt ` chunk. */
function readWavFormat(chunk: Uint8Array) {
  if (chunk.length < 16) throw damagedWav('its format chunk is too short')
  const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  const channels = view.getUint16(2, true)
  const rateHz = view.getUint32(4, true)
  const frameBytes = view.getUint16(12, true)
  const bits = view.getUint16(14, true)
  if (channels === 0) throw damagedWav('its format chunk has no channels')
  if (channels > channelsMax) throw unsupportedWav(`${channels} channels`, { channels })
  requireSupportedRate(rateHz)
  const format = sampleFormat(formatTag(chunk, view), bits)
  // Samples are left-aligned in their bytes, so the byte size determines the format.
  if (frameBytes !== sampleFormats[format].bytes * channels) {
    throw unsupportedWav(`${bits} bits in ${frameBytes} bytes for ${channels} channels`, { bits })
  }
  return { format, channels, rateHz }
}

function formatTag(chunk: Uint8Array, view: DataView): number {
  const tag = view.getUint16(0, true)
  if (tag !== extensible) return tag
  if (chunk.length < 40) throw damagedWav('its extensible format chunk is too short')
  const known = guidTail.every((byte, at) => chunk[26 + at] === byte)
  if (!known) throw unsupportedWav('an unknown extensible format', { format: tag })
  return view.getUint16(24, true)
}

function sampleFormat(tag: number, bits: number): SampleFormat {
  const format = formats[tag]?.[Math.ceil(bits / 8)]
  if (format !== undefined) return format
  throw unsupportedWav(`format ${tag} with ${bits} bits`, { format: tag, bits })
}

function damagedWav(problem: string): AudioError {
  return new AudioError('bad_audio', `The WAV header is damaged: ${problem}.`)
}

function unsupportedWav(found: string, details: Record<string, unknown>): AudioError {
  return new AudioError(
    'unsupported_audio',
    `WAV must contain PCM of 8 to 32 bits, floats, A-law or mu-law; this contains ${found}.`,
    details,
  )
}
