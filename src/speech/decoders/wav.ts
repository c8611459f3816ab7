import { createByteReader } from './byte-reader.ts'
import { type AudioDecoder, AudioError, createFaults } from './decoder.ts'
import { openPcmDecoder, type SampleFormat, sampleBytes, unsupportedRate } from './pcm.ts'
import { sourceRateHzMax, sourceRateHzMin } from './sample-output.ts'

/** Chunks before the audio: lists, pictures, notes. */
const headerBytesMax = 1_048_576
const formatBytesMax = 1024

/** Written by recorders that do not know the size in advance. */
const unknownSizes = new Set([0, 0xffffffff])

/** RIFF and RF64. Chunks after the audio are skipped. */
export function openWavDecoder(engineRateHz: number): AudioDecoder {
  const faults = createFaults()
  const reader = createByteReader()
  let headerBytes = 0
  let skipBytes = 0
  let started = false
  let format: WavFormat | null = null
  let longDataBytes: number | null = null
  let audio: AudioDecoder | null = null
  let audioBytesLeft = Number.POSITIVE_INFINITY

  const take = (count: number) => {
    headerBytes += count
    if (headerBytes > headerBytesMax) {
      throw damagedWav(`the audio does not start within ${headerBytesMax} bytes`)
    }
    reader.drop(count)
  }

  /** Reads one part of the header; false when more bytes are needed. */
  const readHeader = (): boolean => {
    if (skipBytes > 0) {
      const skipped = Math.min(skipBytes, reader.available)
      take(skipped)
      skipBytes -= skipped
      return skipBytes === 0
    }
    if (!started) {
      if (reader.peek(12) === null) return false
      take(12)
      started = true
      return true
    }
    const head = reader.peek(8)
    if (head === null) return false
    const name = String.fromCharCode(...head.subarray(0, 4))
    const size = new DataView(head.buffer, head.byteOffset).getUint32(4, true)
    if (name === 'data') return startAudio(size)
    return name === 'fmt ' || name === 'ds64' ? readChunk(name, size) : skipChunk(size)
  }

  const startAudio = (size: number): boolean => {
    if (format === null) throw damagedWav('its audio precedes its format')
    take(8)
    const bytes = size === 0xffffffff && longDataBytes !== null ? longDataBytes : size
    if (!unknownSizes.has(bytes)) audioBytesLeft = bytes
    audio = openPcmDecoder(format.format, format.rateHz, format.channels, engineRateHz, faults)
    return true
  }

  const readChunk = (name: string, size: number): boolean => {
    if (size > formatBytesMax) throw damagedWav(`its chunk ${name.trim()} is too long`)
    // An odd chunk includes a padding byte.
    const chunk = reader.peek(8 + size + (size % 2))?.subarray(8, 8 + size)
    if (chunk === undefined) return false
    if (name === 'fmt ') format = readWavFormat(chunk)
    else longDataBytes = readLongDataBytes(chunk)
    take(8 + size + (size % 2))
    return true
  }

  const skipChunk = (size: number): boolean => {
    take(8)
    skipBytes = size + (size % 2)
    return true
  }

  return {
    faults,
    get sourceRateHz() {
      return format?.rateHz ?? null
    },
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
    *end() {
      if (audio !== null) yield* audio.end()
      else if (headerBytes + reader.available > 0) {
        throw new AudioError('bad_audio', 'The WAV stream ends before its audio starts.')
      }
    },
    close() {},
  }
}

/** The 64-bit audio size of RF64. */
function readLongDataBytes(chunk: Uint8Array): number {
  if (chunk.length < 16) throw damagedWav('its ds64 chunk is too short')
  const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  return Number(view.getBigUint64(8, true))
}

/** The contents of a `fmt ` chunk. */
type WavFormat = {
  readonly format: SampleFormat
  readonly channels: number
  readonly rateHz: number
}

const channelsMax = 32

const pcm = 1
const float = 3
const alaw = 6
const mulaw = 7
const extensible = 0xfffe

/** The end of an extensible format's GUID, which starts with one of the numbers above. */
const guidTail = [
  0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x80, 0x00, 0x00, 0xaa, 0x00, 0x38, 0x9b, 0x71,
]

function readWavFormat(chunk: Uint8Array): WavFormat {
  if (chunk.length < 16) throw damagedWav('its format chunk is too short')
  const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  const channels = view.getUint16(2, true)
  const rateHz = view.getUint32(4, true)
  const frameBytes = view.getUint16(12, true)
  const bits = view.getUint16(14, true)
  if (channels === 0) throw damagedWav('its format chunk has no channels')
  if (channels > channelsMax) {
    throw unsupportedWav(`${channels} channels`, { channels })
  }
  if (rateHz < sourceRateHzMin || rateHz > sourceRateHzMax) throw unsupportedRate(rateHz)
  const format = sampleFormat(formatTag(chunk, view), bits)
  // Samples are left-aligned in their bytes, so the byte size determines the format.
  if (frameBytes !== sampleBytes[format] * channels) {
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
  const format = formatsOf(tag)[Math.ceil(bits / 8)]
  if (format !== undefined) return format
  throw unsupportedWav(`format ${tag} with ${bits} bits`, { format: tag, bits })
}

function formatsOf(tag: number): Readonly<Record<number, SampleFormat>> {
  switch (tag) {
    case pcm:
      return { 1: 'uint8', 2: 'int16', 3: 'int24', 4: 'int32' }
    case float:
      return { 4: 'float32', 8: 'float64' }
    case alaw:
      return { 1: 'alaw' }
    case mulaw:
      return { 1: 'mulaw' }
    default:
      return {}
  }
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
