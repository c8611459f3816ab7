import { AudioError } from './decoder.ts'

/** The contents of a container, in order. The bytes are valid until the next part is requested. */
export type OpusPart =
  | { readonly type: 'head'; readonly head: OpusHead }
  | {
      readonly type: 'packet'
      readonly packet: Uint8Array
      /** Samples at 48 kHz to discard at its end. */
      readonly trimmed48: number
    }
  /** Samples at 48 kHz that are missing according to the timestamps. */
  | { readonly type: 'gap'; readonly missing48: number }

/** Splits the bytes of a container into parts; incomplete ones wait for the next bytes. */
export type OpusDemuxer = (bytes: Uint8Array) => Iterable<OpusPart>

/** The identification header of an Opus stream (RFC 7845, 5.1). */
export type OpusHead = {
  readonly channels: number
  /** Samples at 48 kHz to discard while the decoder converges. */
  readonly preSkip48: number
  /** A factor for the samples. */
  readonly gain: number
  readonly streams: number
  readonly coupledStreams: number
  readonly mapping: readonly number[]
}

/** As long as the longest packet: timestamps of live encoders are that inexact. */
export const jitter48Max = 5_760

const channelsMax = 8

/** The header assumed for raw packets, each of which states whether it is mono or stereo. */
export const plainOpusHead: OpusHead = {
  channels: 2,
  preSkip48: 0,
  gain: 1,
  streams: 1,
  coupledStreams: 1,
  mapping: [0, 1],
}

export function isOpusHead(bytes: Uint8Array): boolean {
  return startsWithText(bytes, 'OpusHead')
}

export function readOpusHead(bytes: Uint8Array): OpusHead {
  if (bytes.length < 19 || !isOpusHead(bytes)) throw damagedHead('it is truncated')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (view.getUint8(8) >> 4 !== 0) throw damagedHead('its version is unknown')
  const channels = view.getUint8(9)
  const family = view.getUint8(18)
  const plain = {
    channels,
    preSkip48: view.getUint16(10, true),
    gain: 10 ** (view.getInt16(16, true) / 256 / 20),
  }
  if (family === 0) {
    if (channels < 1 || channels > 2) throw damagedHead('its channel count is invalid')
    return { ...plain, streams: 1, coupledStreams: channels - 1, mapping: [0, 1] }
  }
  if (channels < 1 || channels > channelsMax) {
    throw new AudioError('unsupported_audio', `Opus must have 1 to ${channelsMax} channels.`, {
      channels,
    })
  }
  return { ...plain, ...readMapping(bytes, channels) }
}

function readMapping(bytes: Uint8Array, channels: number) {
  if (bytes.length < 21 + channels) throw damagedHead('it is truncated')
  const streams = bytes[19] ?? 0
  const coupledStreams = bytes[20] ?? 0
  const mapping = [...bytes.subarray(21, 21 + channels)]
  const decoded = streams + coupledStreams
  const silent = 255
  const wrong = mapping.some((index) => index >= decoded && index !== silent)
  // Streams without a channel would only use memory.
  if (streams === 0 || coupledStreams > streams || decoded > channelsMax || wrong) {
    throw damagedHead('its channel mapping is invalid')
  }
  return { streams, coupledStreams, mapping }
}

export function startsWithText(bytes: Uint8Array, text: string): boolean {
  return [...text].every((character, at) => bytes[at] === character.charCodeAt(0))
}

function damagedHead(problem: string): AudioError {
  return new AudioError('bad_audio', `The header of the Opus stream is damaged: ${problem}.`)
}

/** Samples at 48 kHz in a packet, from its first bytes (RFC 6716, 3.1); 0 if invalid. */
export function packetSamples48(packet: Uint8Array): number {
  const first = packet[0]
  if (first === undefined) return 0
  const frames = frameCount(first, packet[1])
  const samples = frames * frameSamples48(first >> 3)
  return samples > 5760 ? 0 : samples
}

function frameCount(first: number, second: number | undefined): number {
  const code = first & 3
  if (code === 0) return 1
  return code === 3 ? (second ?? 0) & 63 : 2
}

function frameSamples48(configuration: number): number {
  // SILK: 10, 20, 40, 60 ms; hybrid: 10, 20 ms; CELT: 2.5, 5, 10, 20 ms.
  if (configuration < 12) return [480, 960, 1920, 2880][configuration & 3] ?? 0
  if (configuration < 16) return [480, 960][configuration & 1] ?? 0
  return 120 << (configuration & 3)
}
