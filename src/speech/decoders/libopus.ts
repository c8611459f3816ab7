import type { OpusHead } from './opus-head.ts'

/** The output rates of libopus. */
export const libopusRatesHz = [8000, 12_000, 16_000, 24_000, 48_000] as const

export type LibopusRateHz = (typeof libopusRatesHz)[number]

export type Libopus = Awaited<ReturnType<typeof openLibopus>>

/** The maximum packet: 48 frames of 1275 bytes, as libopus reads them, and their lengths. */
export const packetBytesMax = 61_440

/** 120 ms at 48 kHz, the longest packet. */
const packetSamplesMax = 5760

/** Internals of `opus-decoder`. Its version is pinned, and tests detect changes. */
type OpusDecoderInternals = {
  readonly ready: Promise<void>
  readonly _decoder: number
  readonly _common: { readonly wasm: LibopusModule }
}

type LibopusModule = {
  readonly HEAP: ArrayBuffer
  malloc(bytes: number): number
  free(pointer: number): void
  opus_frame_decoder_create(
    rateHz: number,
    channels: number,
    streams: number,
    coupledStreams: number,
    mapping: number,
    preSkip: number,
    forceStereo: number,
  ): number
  opus_frame_decode_float_deinterleaved(
    decoder: number,
    packet: number,
    packetBytes: number,
    output: number,
  ): number
  opus_frame_decoder_destroy(decoder: number): void
}

/** The index of the decoder's buffer address, which destroying it does not free. */
const bufferWord = 5

/**
 * A libopus decoder for consecutive streams. It calls the functions of the WebAssembly module
 * directly: the package's own methods write to the console and need a turn of the event loop for
 * each new stream, which would make the samples depend on the chunking.
 */
export async function openLibopus(rateHz: LibopusRateHz) {
  // Imported on first use to keep the start fast.
  const { OpusDecoder } = await import('opus-decoder')
  const internals = new OpusDecoder({
    channels: 1,
    sampleRate: rateHz,
  }) as unknown as OpusDecoderInternals
  await internals.ready
  const module = internals._common.wasm
  let decoder = internals._decoder
  let channels = 1
  const packetAt = module.malloc(packetBytesMax)
  let outputAt = module.malloc(packetSamplesMax * 4)

  const destroy = () => {
    if (decoder === 0) return
    const buffer = new Uint32Array(module.HEAP, decoder, bufferWord + 1)[bufferWord] ?? 0
    module.opus_frame_decoder_destroy(decoder)
    module.free(buffer)
    decoder = 0
  }

  return {
    /** Starts a new stream. */
    begin(head: OpusHead): void {
      destroy()
      // libopus itself mixes the two channels of a stream to mono.
      const { streams, coupledStreams, mapping } = isPlain(head) ? mono : head
      channels = mapping.length
      const mappingAt = module.malloc(channels)
      new Uint8Array(module.HEAP, mappingAt, channels).set(mapping)
      decoder = module.opus_frame_decoder_create(
        rateHz,
        channels,
        streams,
        coupledStreams,
        mappingAt,
        0,
        0,
      )
      module.free(mappingAt)
      module.free(outputAt)
      outputAt = module.malloc(packetSamplesMax * channels * 4)
    },
    /** The mean of a packet's channels, valid until the next call; null if it cannot be decoded. */
    decode(packet: Uint8Array): Float32Array | null {
      if (decoder === 0 || packet.length > packetBytesMax) return null
      new Uint8Array(module.HEAP, packetAt, packet.length).set(packet)
      const samples = module.opus_frame_decode_float_deinterleaved(
        decoder,
        packetAt,
        packet.length,
        outputAt,
      )
      if (samples < 0) return null
      const output = new Float32Array(module.HEAP, outputAt, samples * channels)
      return channels === 1 ? output : meanOfPlanes(output, channels)
    },
    close: destroy,
  }
}

const mono = { streams: 1, coupledStreams: 0, mapping: [0] }

function isPlain(head: OpusHead): boolean {
  return head.streams === 1 && head.channels <= 2
}

/** The mean of consecutive channel planes. */
function meanOfPlanes(planes: Float32Array, channels: number): Float32Array {
  const samples = planes.length / channels
  const mean = new Float32Array(samples)
  for (let at = 0; at < planes.length; at++) {
    mean[at % samples] = (mean[at % samples] as number) + (planes[at] as number) / channels
  }
  return mean
}
