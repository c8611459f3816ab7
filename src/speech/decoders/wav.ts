import { createByteReader } from './byte-reader.ts'
import { type AudioDecoder, AudioError } from './decoder.ts'
import { createFaults } from './faults.ts'
import { openPcmDecoder } from './pcm.ts'
import { damagedWav, readWavFormat, type WavFormat } from './wav-header.ts'

/** What may stand before the sound: lists, pictures, notes. */
const headerBytesMax = 1_048_576
const formatBytesMax = 1024

/** Writers that could not know the size of what they were about to write leave one of these. */
const unknownSizes = new Set([0, 0xffffffff])

/** RIFF and RF64. What stands after the sound is not sound, and is passed over. */
export function openWavDecoder(engineRateHz: number): AudioDecoder {
  const faults = createFaults()
  const reader = createByteReader()
  let headerBytes = 0
  let skipBytes = 0
  let started = false
  let format: WavFormat | null = null
  let longDataBytes: number | null = null
  let sound: AudioDecoder | null = null
  let soundBytesLeft = Number.POSITIVE_INFINITY

  const take = (count: number) => {
    headerBytes += count
    if (headerBytes > headerBytesMax) {
      throw damagedWav(`no sound begins within ${headerBytesMax} bytes`)
    }
    reader.drop(count)
  }

  /** Reads one part of the header; false when more bytes are needed for it. */
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
    if (name === 'data') return beginSound(size)
    return name === 'fmt ' || name === 'ds64' ? readChunk(name, size) : skipChunk(size)
  }

  const beginSound = (size: number): boolean => {
    if (format === null) throw damagedWav('its sound comes before its format')
    take(8)
    const bytes = size === 0xffffffff && longDataBytes !== null ? longDataBytes : size
    if (!unknownSizes.has(bytes)) soundBytesLeft = bytes
    sound = openPcmDecoder(format.format, format.rateHz, format.channels, engineRateHz, faults)
    return true
  }

  const readChunk = (name: string, size: number): boolean => {
    if (size > formatBytesMax) throw damagedWav(`its chunk ${name.trim()} is too long`)
    // The padding of an odd chunk is part of it.
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
      while (sound === null) if (!readHeader()) return
      const taken = Math.min(soundBytesLeft, reader.available)
      const samples = reader.peek(taken)
      if (samples === null) return
      soundBytesLeft -= taken
      reader.drop(reader.available)
      yield* sound.decode(samples)
    },
    *end() {
      if (sound !== null) yield* sound.end()
      else if (headerBytes + reader.available > 0) {
        throw new AudioError('bad_audio', 'The WAV ends before its sound begins.')
      }
    },
    close() {},
  }
}

/** The 64 bits that RF64 has for the size of its sound. */
function readLongDataBytes(chunk: Uint8Array): number {
  if (chunk.length < 16) throw damagedWav('its ds64 chunk is too short')
  const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  return Number(view.getBigUint64(8, true))
}
