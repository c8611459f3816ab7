import { createByteReader } from './byte-reader.ts'
import type { AudioFaults, FormatDecoder } from './decoder.ts'
import { requireSupportedRate, type SampleOutput } from './sample-output.ts'

/** Frames converted at once. */
const sliceFrames = 4096

/** Bare samples. Chunks may end within a frame; an incomplete last frame is dropped. */
export function createPcmDecoder(
  format: SampleFormat,
  sourceRateHz: number,
  channels: number,
  output: SampleOutput,
): FormatDecoder {
  requireSupportedRate(sourceRateHz)
  // The most common case: samples already in the engine's format are only copied.
  const isPlain = format === 'int16' && channels === 1 && sourceRateHz === output.engineRateHz
  const framesMax = isPlain ? output.pieceSamplesMax : sliceFrames
  const frameBytes = sampleFormats[format].bytes * channels
  const reader = createByteReader()
  return {
    *decode(bytes) {
      const isWhole = reader.available === 0 && bytes.length % 2 === 0 && bytes.length > 0
      if (isPlain && isWhole && bytes.length <= framesMax * 2) {
        yield copySamples(bytes)
        return
      }
      reader.accept(bytes)
      for (;;) {
        const frames = Math.min(framesMax, Math.floor(reader.available / frameBytes))
        // Peeking at an incomplete frame keeps its bytes.
        const slice = reader.peek(Math.max(1, frames) * frameBytes)
        if (slice === null) return
        reader.drop(slice.length)
        if (isPlain) yield copySamples(slice)
        else
          yield* output.write(meanOfChannels(slice, format, channels, output.faults), sourceRateHz)
      }
    },
  }
}

/** For so few samples a loop is faster than a typed-array view. */
function copySamples(bytes: Uint8Array): Int16Array {
  const samples = new Int16Array(bytes.length >> 1)
  for (let at = 0, from = 0; at < samples.length; at++, from += 2) {
    samples[at] = (bytes[from] as number) | ((bytes[from + 1] as number) << 8)
  }
  return samples
}

type ReadSample = (view: DataView, offset: number, faults: AudioFaults) => number

/** The formats of one sample, little-endian. */
export const sampleFormats = {
  uint8: { bytes: 1, read: (view, offset) => (view.getUint8(offset) - 128) / 128 },
  int16: { bytes: 2, read: (view, offset) => view.getInt16(offset, true) / 32_768 },
  int24: {
    bytes: 3,
    read: (view, offset) =>
      (view.getInt8(offset + 2) * 65_536 + view.getUint16(offset, true)) / 8_388_608,
  },
  int32: { bytes: 4, read: (view, offset) => view.getInt32(offset, true) / 2_147_483_648 },
  float32: {
    bytes: 4,
    read: (view, offset, faults) => withinBounds(view.getFloat32(offset, true), faults),
  },
  float64: {
    bytes: 8,
    read: (view, offset, faults) => withinBounds(view.getFloat64(offset, true), faults),
  },
  alaw: { bytes: 1, read: (view, offset) => expandAlaw(view.getUint8(offset)) / 32_768 },
  mulaw: { bytes: 1, read: (view, offset) => expandMulaw(view.getUint8(offset)) / 32_768 },
} satisfies Record<string, { bytes: number; read: ReadSample }>

export type SampleFormat = keyof typeof sampleFormats

/** The mean of the channels of interleaved samples, -1 to 1. The bytes are complete frames. */
function meanOfChannels(
  bytes: Uint8Array,
  format: SampleFormat,
  channels: number,
  faults: AudioFaults,
): Float32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const { bytes: width, read } = sampleFormats[format]
  const output = new Float32Array(bytes.length / width / channels)
  let offset = 0
  for (let frame = 0; frame < output.length; frame++) {
    let sum = 0
    for (let channel = 0; channel < channels; channel++) {
      sum += read(view, offset, faults)
      offset += width
    }
    output[frame] = sum / channels
  }
  return output
}

function withinBounds(sample: number, faults: AudioFaults): number {
  if (sample >= -1 && sample <= 1) return sample
  if (!Number.isFinite(sample)) {
    faults.invalidSamples += 1
    return 0
  }
  faults.clippedSamples += 1
  return Math.sign(sample)
}

/** ITU-T G.711: sign, 3-bit exponent and 4-bit mantissa, with alternate bits inverted. */
function expandAlaw(code: number): number {
  const bits = code ^ 0x55
  const exponent = (bits >> 4) & 7
  const mantissa = ((bits & 15) << 4) | 8
  const size = exponent === 0 ? mantissa : (mantissa | 0x100) << (exponent - 1)
  return bits & 0x80 ? size : -size
}

/** ITU-T G.711: the same with all bits inverted and a bias of 33 steps. */
function expandMulaw(code: number): number {
  const bits = ~code & 0xff
  const size = ((((bits & 15) << 3) | 0x84) << ((bits >> 4) & 7)) - 0x84
  return bits & 0x80 ? -size : size
}
