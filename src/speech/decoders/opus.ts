import { AudioError, type AudioFaults, countCorrupt, type FormatDecoder } from './decoder.ts'
import { createOggDemuxer } from './ogg.ts'
import { type OpusDemuxer, type OpusPart, packetSamples48, plainOpusHead } from './opus-head.ts'
import type { SampleOutput } from './sample-output.ts'
import { type Libopus, libopusRatesHz, openLibopus, packetBytesMax } from './wasm-decoders.ts'
import { createWebmDemuxer } from './webm.ts'

export type OpusContainer = 'ogg' | 'webm' | 'raw'

const opusRateHz = 48_000
/** Gaps of one stream in total; a later one does not count, as after a restart of the timestamps. */
const gapsMsMax = 3_600_000

/**
 * Decodes Opus in a container. libopus outputs the engine's rate if it can. `container` is called
 * once, with the first bytes.
 */
export async function openOpusDecoder(
  output: SampleOutput,
  container: () => OpusContainer,
): Promise<FormatDecoder> {
  const rateHz = libopusRatesHz.find((rate) => rate === output.engineRateHz) ?? opusRateHz
  const libopus = await openLibopus(rateHz)
  const stream = createOpusStream(libopus, rateHz, output)
  let demuxer: OpusDemuxer | null = null
  return {
    *decode(bytes) {
      demuxer ??= createDemuxer(container(), output.faults)
      for (const part of demuxer(bytes)) yield* stream(part)
    },
    close: libopus.close,
  }
}

function createDemuxer(container: OpusContainer, faults: AudioFaults): OpusDemuxer {
  switch (container) {
    case 'ogg':
      return createOggDemuxer(faults)
    case 'webm':
      return createWebmDemuxer(faults)
    case 'raw':
      return createRawDemuxer()
  }
}

/** Each call passes one packet. */
function createRawDemuxer(): OpusDemuxer {
  let begun = false
  return function* (packet) {
    if (packet.length > packetBytesMax) {
      throw new AudioError(
        'bad_audio',
        `A raw Opus packet has at most ${packetBytesMax} bytes; send each in its own message.`,
        { packet_bytes_max: packetBytesMax },
      )
    }
    if (!begun) yield { type: 'head', head: plainOpusHead }
    begun = true
    yield { type: 'packet', packet, trimmed48: 0 }
  }
}

/** Decodes heads and packets to pieces: applies pre-skip, trimming, gain and gaps. */
function createOpusStream(
  libopus: Libopus,
  rateHz: number,
  output: SampleOutput,
): (part: OpusPart) => Iterable<Int16Array> {
  let skip = 0
  let gain = 1
  let gapsMs = 0
  const atRate = (samples48: number) => Math.round((samples48 * rateHz) / opusRateHz)

  const decode = (packet: Uint8Array): Float32Array => {
    const samples = libopus.decode(packet)
    if (samples !== null) return samples
    countCorrupt(output.faults)
    // Replaced by silence, so that later audio keeps its time.
    return new Float32Array(atRate(packetSamples48(packet)))
  }

  return function* (part) {
    if (part.type === 'head') {
      libopus.begin(part.head)
      skip = atRate(part.head.preSkip48)
      gain = part.head.gain
      return
    }
    if (part.type === 'gap') {
      const missingMs = (part.missing48 * 1000) / opusRateHz
      if (gapsMs + missingMs > gapsMsMax) return
      gapsMs += missingMs
      const skippedMs = Math.min(missingMs, (skip * 1000) / rateHz)
      skip -= Math.round((skippedMs * rateHz) / 1000)
      yield* output.gap(missingMs - skippedMs)
      return
    }
    // An empty packet means a lost one, for which libopus would synthesise audio.
    if (part.packet.length === 0) return
    const samples = decode(part.packet)
    const kept = Math.max(0, samples.length - atRate(part.trimmed48))
    const audio = samples.subarray(Math.min(skip, kept), kept)
    skip = Math.max(0, skip - samples.length)
    if (gain !== 1) for (let at = 0; at < audio.length; at++) audio[at] = (audio[at] ?? 0) * gain
    yield* output.write(audio, rateHz)
  }
}
