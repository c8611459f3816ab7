import { AudioError } from './decoder.ts'
import { unsupportedRate } from './pcm.ts'
import { type SampleFormat, sampleBytes } from './pcm-samples.ts'
import { sourceRateHzMax, sourceRateHzMin } from './sample-output.ts'

/** What a `fmt ` chunk says. */
export type WavFormat = {
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

/** The end of the GUID of an extensible format whose beginning is one of the numbers above. */
const guidTail = [
  0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x80, 0x00, 0x00, 0xaa, 0x00, 0x38, 0x9b, 0x71,
]

export function readWavFormat(chunk: Uint8Array): WavFormat {
  if (chunk.length < 16) throw damagedWav('its format chunk is too short')
  const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  const channels = view.getUint16(2, true)
  const rateHz = view.getUint32(4, true)
  const frameBytes = view.getUint16(12, true)
  const bits = view.getUint16(14, true)
  if (channels === 0) throw damagedWav('its format chunk names no channel')
  if (channels > channelsMax) {
    throw unsupportedWav(`${channels} channels`, { channels })
  }
  if (rateHz < sourceRateHzMin || rateHz > sourceRateHzMax) throw unsupportedRate(rateHz)
  const format = sampleFormat(formatTag(chunk, view), bits)
  // Bits that fill their bytes only in part stand at the upper end, so the bytes tell all.
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

export function damagedWav(what: string): AudioError {
  return new AudioError('bad_audio', `The WAV header is damaged: ${what}.`)
}

function unsupportedWav(what: string, details: Record<string, unknown>): AudioError {
  return new AudioError(
    'unsupported_audio',
    `WAV is taken with PCM of 8 to 32 bits, floats, A-law or mu-law; this holds ${what}.`,
    details,
  )
}
