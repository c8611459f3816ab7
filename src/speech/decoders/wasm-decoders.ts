import { loadMpg123 } from './mpg123-package.ts'
import type { OpusHead } from './opus-head.ts'

/**
 * Internals of the packages `opus-decoder` and `mpg123-decoder`. Their versions are pinned, and tests
 * detect changes. The functions of the WebAssembly modules are called directly: the packages' own
 * methods write to the console; those of Opus need a turn of the event loop for each new stream,
 * which would make the samples depend on the chunking; those of MP3 loop on persistent errors and
 * return all decoded audio at once.
 */
type DecoderInternals<Functions extends string> = {
  readonly ready: Promise<void>
  readonly _decoder: number
  readonly _output: { readonly ptr: number; readonly len: number }
  readonly _common: {
    readonly wasm: { readonly HEAP: ArrayBuffer } & Readonly<
      Record<Functions | 'malloc' | 'free', (...values: number[]) => number>
    >
  }
}

/** The output rates of libopus. */
export const libopusRatesHz = [8000, 12_000, 16_000, 24_000, 48_000] as const

export type LibopusRateHz = (typeof libopusRatesHz)[number]

export type Libopus = Awaited<ReturnType<typeof openLibopus>>

/** The maximum packet: 48 frames of 1275 bytes, as libopus reads them, and their lengths. */
export const packetBytesMax = 61_440

/** 120 ms at 48 kHz, the longest packet. */
const packetSamplesMax = 5760

/** The index of the decoder's buffer address, which destroying it does not free. */
const bufferWord = 5

const mono = { streams: 1, coupledStreams: 0, mapping: [0] }

/** A libopus decoder for consecutive streams. */
export async function openLibopus(rateHz: LibopusRateHz) {
  // Imported on first use to keep the start fast.
  // A copy of all exports: otherwise the bundler removes a class that only the package itself uses.
  const { OpusDecoder }: typeof import('opus-decoder') = { ...(await import('opus-decoder')) }
  const internals = new OpusDecoder({
    channels: 1,
    sampleRate: rateHz,
  }) as unknown as DecoderInternals<
    | 'opus_frame_decoder_create'
    | 'opus_frame_decode_float_deinterleaved'
    | 'opus_frame_decoder_destroy'
  >
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
      const isPlain = head.streams === 1 && head.channels <= 2
      const { streams, coupledStreams, mapping } = isPlain ? mono : head
      channels = mapping.length
      const at = module.malloc(channels)
      new Uint8Array(module.HEAP, at, channels).set(mapping)
      // The last two: no pre-skip, no forced stereo.
      decoder = module.opus_frame_decoder_create(
        rateHz,
        channels,
        streams,
        coupledStreams,
        at,
        0,
        0,
      )
      module.free(at)
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

/**
 * The output of libmpg123 for corrupt bytes depends on the chunking, so it always receives this many
 * bytes at a time. Most frame lengths are a multiple of it, so no frame waits for its last bytes.
 */
export const feedBytes = 8

export type Mpg123Read = {
  /** The mean of both channels, valid until the next call; may be empty. */
  readonly samples: Float32Array
  readonly rateHz: number
  readonly next: 'read' | 'feed' | 'error'
}

const noSamples = new Float32Array()

const ok = 0
const needMore = -10
const newFormat = -11

/** A libmpg123 decoder. */
export async function openMpg123() {
  // Imported on first use to keep the start fast.
  const { MPEGDecoder } = await loadMpg123()
  const internals = new MPEGDecoder({ enableGapless: true }) as unknown as DecoderInternals<
    | 'mpeg_frame_decoder_create'
    | 'mpeg_decoder_feed'
    | 'mpeg_decoder_read'
    | 'mpeg_frame_decoder_destroy'
  >
  await internals.ready
  const module = internals._common.wasm
  const { ptr: outputAt, len: outputFloats } = internals._output
  const inputAt = module.malloc(feedBytes)
  const input = new Uint8Array(module.HEAP, inputAt, feedBytes)
  /** The number of samples, the rate, the error and the address of a new decoder. */
  const resultAt = module.malloc(4 * 4)
  const results = new Uint32Array(module.HEAP, resultAt, 4)
  let decoder = internals._decoder
  let rateHz = 0

  const destroy = () => {
    if (decoder !== 0) module.mpeg_frame_decoder_destroy(decoder)
    decoder = 0
  }

  return {
    /** Passes at most `feedBytes`; then `read` until `next` is 'feed'. */
    feed(bytes: Uint8Array): void {
      if (decoder === 0) return
      input.set(bytes)
      module.mpeg_decoder_feed(decoder, inputAt, bytes.length)
    },
    read(): Mpg123Read {
      if (decoder === 0) return { samples: noSamples, rateHz, next: 'feed' }
      results[0] = 0
      const status = quietly(() =>
        module.mpeg_decoder_read(
          decoder,
          outputAt,
          outputFloats,
          resultAt,
          resultAt + 4,
          resultAt + 8,
        ),
      )
      const count = results[0] ?? 0
      const samples =
        count === 0
          ? noSamples
          : meanOfPlanes(new Float32Array(module.HEAP, outputAt, 2 * count), 2)
      // Samples returned with a new format still have the old one.
      if (samples.length === 0 || status !== newFormat) rateHz = results[1] ?? 0
      const next =
        status === ok || status === newFormat ? 'read' : status === needMore ? 'feed' : 'error'
      return { samples, rateHz, next }
    },
    /** Resets it to its initial state. */
    restart(): void {
      destroy()
      const gapless = 1
      module.mpeg_frame_decoder_create(resultAt + 12, gapless)
      decoder = results[3] ?? 0
    },
    close: destroy,
  }
}

/** libmpg123 writes some errors to the console regardless of its settings. */
function quietly<T>(run: () => T): T {
  const { error } = console
  console.error = () => {}
  try {
    return run()
  } finally {
    console.error = error
  }
}

/** The mean of consecutive channel planes. */
function meanOfPlanes(planes: Float32Array, channels: number): Float32Array {
  const mean = new Float32Array(planes.length / channels)
  for (let channel = 0, at = 0; channel < channels; channel++) {
    for (let sample = 0; sample < mean.length; sample++, at++) {
      mean[sample] = (mean[sample] as number) + (planes[at] as number) / channels
    }
  }
  return mean
}
