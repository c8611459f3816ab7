import { AudioError } from './decoder.ts'
import { createInstancePool, type Lease } from './instance-pool.ts'
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

/** Of a decoder for one Opus stream, measured: at most this. */
const decoderBytesMax = 45_000
/** What the decoders of more than two channels may use of an instance with 28 MiB. */
const surroundBytesMax = 18_000_000
/** Mono decoders of so many streams use 4 MB. */
const opusStreamsMax = 64

const libopusPool = createInstancePool(createLibopus, opusStreamsMax)

async function createLibopus() {
  // Imported on first use to keep the start fast.
  // A copy of all exports: otherwise the bundler removes a class that only the package itself uses.
  const { OpusDecoder }: typeof import('opus-decoder') = { ...(await import('opus-decoder')) }
  const internals = new OpusDecoder({ channels: 1 }) as unknown as DecoderInternals<
    | 'opus_frame_decoder_create'
    | 'opus_frame_decode_float_deinterleaved'
    | 'opus_frame_decoder_destroy'
  >
  await internals.ready
  const module = internals._common.wasm
  return { module, packetAt: module.malloc(packetBytesMax), surroundBytes: 0 }
}

/** A libopus decoder for consecutive streams. Other streams use the same instance meanwhile. */
export async function openLibopus(rateHz: LibopusRateHz) {
  const lease = await libopusPool.acquire()
  const { instance } = lease
  const { module, packetAt } = instance
  let decoder = 0
  let outputAt = 0
  let channels = 1
  let surroundBytes = 0

  const destroy = () => {
    if (decoder !== 0) {
      const buffer = new Uint32Array(module.HEAP, decoder, bufferWord + 1)[bufferWord] ?? 0
      module.opus_frame_decoder_destroy(decoder)
      module.free(buffer)
    }
    if (outputAt !== 0) module.free(outputAt)
    instance.surroundBytes -= surroundBytes
    surroundBytes = 0
    decoder = 0
    outputAt = 0
  }

  return {
    /** Starts a new stream. Throws an `AudioError` if there is no memory for its channels. */
    begin(head: OpusHead): void {
      destroy()
      // libopus itself mixes the two channels of a stream to mono.
      const isPlain = head.streams === 1 && head.channels <= 2
      const { streams, coupledStreams, mapping } = isPlain ? mono : head
      channels = mapping.length
      const outputBytes = packetSamplesMax * channels * 4
      if (!isPlain) {
        const neededBytes = streams * decoderBytesMax + outputBytes
        if (instance.surroundBytes + neededBytes > surroundBytesMax) throw tooManyChannels(channels)
        surroundBytes = neededBytes
        instance.surroundBytes += neededBytes
      }
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
      outputAt = module.malloc(outputBytes)
    },
    /** The mean of a packet's channels, valid until the next call; null if it cannot be decoded. */
    decode(packet: Uint8Array): Float32Array | null {
      if (decoder === 0 || packet.length > packetBytesMax) return null
      new Uint8Array(module.HEAP, packetAt, packet.length).set(packet)
      const samples = untilTrap(lease, () =>
        module.opus_frame_decode_float_deinterleaved(decoder, packetAt, packet.length, outputAt),
      )
      if (samples < 0) return null
      const output = new Float32Array(module.HEAP, outputAt, samples * channels)
      return channels === 1 ? output : meanOfPlanes(output, channels)
    },
    close(): void {
      destroy()
      lease.release()
    },
  }
}

function tooManyChannels(channels: number): AudioError {
  return new AudioError(
    'unsupported_audio',
    `There is no memory to decode ${channels} channels; send mono or stereo.`,
    { channels },
  )
}

/** After a trap the instance is not used for new streams; the error ends this one. */
function untilTrap<T>(lease: Lease<unknown>, run: () => T): T {
  try {
    return run()
  } catch (error) {
    lease.fail()
    throw error
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

/** An instance of 16 MiB has room for 38 decoders. */
const mp3StreamsMax = 16

const mpg123Pool = createInstancePool(createMpg123, mp3StreamsMax)

async function createMpg123() {
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
  // Every stream has its own decoder.
  module.mpeg_frame_decoder_destroy(internals._decoder)
  const inputAt = module.malloc(feedBytes)
  /** The number of samples, the rate, the error and the address of a new decoder. */
  const resultAt = module.malloc(4 * 4)
  return {
    module,
    output: internals._output,
    inputAt,
    input: new Uint8Array(module.HEAP, inputAt, feedBytes),
    resultAt,
    results: new Uint32Array(module.HEAP, resultAt, 4),
  }
}

/** A libmpg123 decoder. Other streams use the same instance meanwhile. */
export async function openMpg123() {
  const lease = await mpg123Pool.acquire()
  const { module, output, inputAt, input, resultAt, results } = lease.instance
  const { ptr: outputAt, len: outputFloats } = output
  let decoder = create()
  let rateHz = 0

  function create(): number {
    const gapless = 1
    results[3] = 0
    module.mpeg_frame_decoder_create(resultAt + 12, gapless)
    return results[3] ?? 0
  }

  const destroy = () => {
    if (decoder !== 0) module.mpeg_frame_decoder_destroy(decoder)
    decoder = 0
  }

  return {
    /** Passes at most `feedBytes`; then `read` until `next` is 'feed'. */
    feed(bytes: Uint8Array): void {
      if (decoder === 0) return
      input.set(bytes)
      untilTrap(lease, () => module.mpeg_decoder_feed(decoder, inputAt, bytes.length))
    },
    read(): Mpg123Read {
      if (decoder === 0) return { samples: noSamples, rateHz, next: 'feed' }
      results[0] = 0
      const status = untilTrap(lease, () =>
        quietly(() =>
          module.mpeg_decoder_read(
            decoder,
            outputAt,
            outputFloats,
            resultAt,
            resultAt + 4,
            resultAt + 8,
          ),
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
      decoder = create()
    },
    close(): void {
      destroy()
      lease.release()
    },
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
