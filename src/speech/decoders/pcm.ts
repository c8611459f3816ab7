import { createByteReader } from './byte-reader.ts'
import { type AudioDecoder, AudioError, type AudioFaults, pieceMsMax } from './decoder.ts'
import { createSampleOutput, sourceRateHzMax, sourceRateHzMin } from './sample-output.ts'

/** Frames converted at once. */
const sliceFrames = 4096

/** Bare samples. Chunks may end within a frame; an incomplete last frame is dropped. */
export function openPcmDecoder(
  format: SampleFormat,
  sourceRateHz: number,
  channels: number,
  engineRateHz: number,
  faults: AudioFaults,
): AudioDecoder {
  if (!(sourceRateHz >= sourceRateHzMin && sourceRateHz <= sourceRateHzMax)) {
    throw unsupportedRate(sourceRateHz)
  }
  if (format === 'int16' && channels === 1 && sourceRateHz === engineRateHz) {
    return openPlainDecoder(engineRateHz, faults)
  }
  const output = createSampleOutput(engineRateHz, faults)
  const reader = createByteReader()
  const frameBytes = sampleBytes[format] * channels
  return {
    faults,
    sourceRateHz,
    *decode(bytes) {
      reader.accept(bytes)
      for (;;) {
        const frames = Math.min(sliceFrames, Math.floor(reader.available / frameBytes))
        // Peeking at an incomplete frame keeps its bytes.
        const slice = reader.peek(Math.max(1, frames) * frameBytes)
        if (slice === null) return
        const samples = meanOfChannels(slice, format, channels, faults)
        reader.drop(slice.length)
        yield* output.write(samples, sourceRateHz)
      }
    },
    end: () => output.end(),
    close() {},
  }
}

/** Samples already in the engine's format, which is the most common case: only copied. */
function openPlainDecoder(engineRateHz: number, faults: AudioFaults): AudioDecoder {
  const reader = createByteReader()
  const pieceSamplesMax = Math.floor((engineRateHz * pieceMsMax) / 1000)
  return {
    faults,
    sourceRateHz: engineRateHz,
    *decode(bytes) {
      const isWhole = reader.available === 0 && bytes.length % 2 === 0
      if (bytes.length === 0) return
      if (isWhole && bytes.length <= pieceSamplesMax * 2) {
        yield samplesOf(bytes, bytes.length >> 1)
        return
      }
      reader.accept(bytes)
      for (;;) {
        const count = Math.min(pieceSamplesMax, reader.available >> 1)
        // Peeking at an incomplete sample keeps its bytes.
        const slice = reader.peek(Math.max(1, count) * 2)
        if (slice === null) return
        yield samplesOf(slice, count)
        reader.drop(slice.length)
      }
    },
    end: () => [],
    close() {},
  }
}

/** For so few samples a loop is faster than a typed-array view. */
function samplesOf(bytes: Uint8Array, count: number): Int16Array {
  const samples = new Int16Array(count)
  for (let at = 0, from = 0; at < count; at++, from += 2) {
    samples[at] = (bytes[from] as number) | ((bytes[from + 1] as number) << 8)
  }
  return samples
}

export function unsupportedRate(rateHz: number): AudioError {
  return new AudioError(
    'unsupported_audio',
    `The sample rate must be ${sourceRateHzMin} to ${sourceRateHzMax} Hz; this is ${rateHz} Hz.`,
    { sample_rate_hz: rateHz },
  )
}

/** The format of one sample, little-endian. */
export type SampleFormat =
  | 'uint8'
  | 'int16'
  | 'int24'
  | 'int32'
  | 'float32'
  | 'float64'
  | 'alaw'
  | 'mulaw'

export const sampleBytes: Readonly<Record<SampleFormat, number>> = {
  uint8: 1,
  int16: 2,
  int24: 3,
  int32: 4,
  float32: 4,
  float64: 8,
  alaw: 1,
  mulaw: 1,
}

/** The mean of the channels of interleaved samples, -1 to 1. The bytes are complete frames. */
function meanOfChannels(
  bytes: Uint8Array,
  format: SampleFormat,
  channels: number,
  faults: AudioFaults,
): Float32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const width = sampleBytes[format]
  const read = readers[format]
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

type ReadSample = (view: DataView, offset: number, faults: AudioFaults) => number

const readers: Readonly<Record<SampleFormat, ReadSample>> = {
  uint8: (view, offset) => (view.getUint8(offset) - 128) / 128,
  int16: (view, offset) => view.getInt16(offset, true) / 32_768,
  int24: (view, offset) =>
    (view.getInt8(offset + 2) * 65_536 + view.getUint16(offset, true)) / 8_388_608,
  int32: (view, offset) => view.getInt32(offset, true) / 2_147_483_648,
  float32: (view, offset, faults) => withinBounds(view.getFloat32(offset, true), faults),
  float64: (view, offset, faults) => withinBounds(view.getFloat64(offset, true), faults),
  alaw: (view, offset) => expandAlaw(view.getUint8(offset)) / 32_768,
  mulaw: (view, offset) => expandMulaw(view.getUint8(offset)) / 32_768,
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
