import type { AudioFaults } from './decoder.ts'

/** How one sample is written; all in little-endian order. */
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

/** Interleaved samples → the mean of the channels, from -1 to 1. The bytes are whole frames. */
export function meanOfChannels(
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

/** ITU-T G.711: sign, three bits of exponent and four of mantissa, with every other bit inverted. */
function expandAlaw(code: number): number {
  const bits = code ^ 0x55
  const exponent = (bits >> 4) & 7
  const mantissa = ((bits & 15) << 4) | 8
  const size = exponent === 0 ? mantissa : (mantissa | 0x100) << (exponent - 1)
  return bits & 0x80 ? size : -size
}

/** ITU-T G.711: as above with all bits inverted and a bias of 33 steps. */
function expandMulaw(code: number): number {
  const bits = ~code & 0xff
  const size = ((((bits & 15) << 3) | 0x84) << ((bits >> 4) & 7)) - 0x84
  return bits & 0x80 ? -size : size
}
