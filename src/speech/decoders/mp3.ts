import { createByteReader } from './byte-reader.ts'
import { type AudioDecoder, AudioError, countCorrupt, createFaults } from './decoder.ts'
import { unsupportedRate } from './pcm.ts'
import { createSampleOutput, sourceRateHzMax, sourceRateHzMin } from './sample-output.ts'

/** Titles and pictures, before the audio or between concatenated files. */
const tagBytesMax = 16_777_216
/** More bytes without audio are a tag or frame that would fill the decoder's memory. */
const silentBytesMax = 16_384

const tagHeadBytes = 10

/** MP3, starting anywhere, including concatenated streams. */
export async function openMp3Decoder(engineRateHz: number): Promise<AudioDecoder> {
  const mpg123 = await openMpg123()
  const faults = createFaults()
  const output = createSampleOutput(engineRateHz, faults)
  const reader = createByteReader()
  let sourceRateHz: number | null = null
  let tagBytes = 0
  let silentBytes = 0

  /** The next bytes for the decoder, up to a tag; null when more are needed to decide. */
  const nextFeed = (ended: boolean): Uint8Array | null => {
    for (;;) {
      tagBytes -= reader.drop(tagBytes)
      const bytes = reader.peek(ended ? Math.min(feedBytes, reader.available) : feedBytes)
      if (tagBytes > 0 || bytes === null || bytes.length === 0) return null
      const tagAt = bytes.indexOf(id3Mark[0])
      if (tagAt === -1) return bytes
      const head = reader.peek(tagAt + tagHeadBytes)
      if (head === null && !ended) return null
      tagBytes = head === null ? 0 : id3Bytes(head.subarray(tagAt))
      // The first byte of a tag also occurs in audio.
      if (tagBytes === 0) return reader.peek(tagAt + 1)
      if (tagAt === 0) continue
      // Bytes before the tag are decoded first; then the tag is found again.
      tagBytes = 0
      return reader.peek(tagAt)
    }
  }

  function take({ samples, rateHz }: Mpg123Read): Iterable<Int16Array> {
    if (rateHz < sourceRateHzMin || rateHz > sourceRateHzMax) throw unsupportedRate(rateHz)
    sourceRateHz = rateHz
    silentBytes = 0
    return output.write(samples, rateHz)
  }

  function* feedAll(ended: boolean): Generator<Int16Array> {
    for (let bytes = nextFeed(ended); bytes !== null; bytes = nextFeed(ended)) {
      mpg123.feed(bytes)
      silentBytes += reader.drop(bytes.length)
      for (let next = 'read'; next !== 'feed'; ) {
        const read = mpg123.read()
        if (read.samples.length > 0) yield* take(read)
        next = read.next
        // Repeated errors end here too.
        if (next === 'error') countCorrupt(faults)
      }
      if (silentBytes <= silentBytesMax) continue
      countCorrupt(faults)
      mpg123.restart()
      silentBytes = 0
    }
  }

  return {
    faults,
    get sourceRateHz() {
      return sourceRateHz
    },
    *decode(bytes) {
      reader.accept(bytes)
      yield* feedAll(false)
    },
    *end() {
      yield* feedAll(true)
      yield* output.end()
    },
    close: () => mpg123.close(),
  }
}

const id3Mark = [0x49, 0x44, 0x33] as const

/**
 * The length of an ID3v2 tag with this header; 0 if it is none. Enough of its bits are fixed that
 * audio does not match by chance.
 */
function id3Bytes(head: Uint8Array): number {
  const [version = 0, revision, flags = 0, ...size] = head.subarray(3, tagHeadBytes)
  if (!id3Mark.every((byte, at) => head[at] === byte)) return 0
  if (version < 2 || version > 4 || revision !== 0 || (flags & 0x0f) !== 0) return 0
  if (size.some((byte) => byte > 0x7f)) return 0
  const footerBytes = flags & 0x10 ? tagHeadBytes : 0
  const bytes = tagHeadBytes + footerBytes + size.reduce((sum, byte) => sum * 128 + byte, 0)
  if (bytes <= tagBytesMax) return bytes
  throw new AudioError('bad_audio', `The ID3 tag is longer than ${tagBytesMax} bytes.`)
}

type Mpg123Read = {
  /** The mean of both channels, valid until the next call; may be empty. */
  readonly samples: Float32Array
  readonly rateHz: number
  readonly next: 'read' | 'feed' | 'error'
}

/**
 * The output of libmpg123 for corrupt bytes depends on the chunking, so it always receives this many
 * bytes at a time. Most frame lengths are a multiple of it, so no frame waits for its last bytes.
 */
const feedBytes = 8

/** Internals of `mpg123-decoder`. Its version is pinned, and tests detect changes. */
type MpegDecoderInternals = {
  readonly ready: Promise<void>
  readonly _common: { readonly wasm: Mpg123Module }
  readonly _decoder: number
  readonly _output: { readonly ptr: number; readonly len: number }
}

type Mpg123Module = {
  readonly HEAP: ArrayBuffer
  malloc(bytes: number): number
  mpeg_frame_decoder_create(decoderAt: number, gapless: 0 | 1): number
  mpeg_decoder_feed(decoder: number, bytes: number, count: number): number
  mpeg_decoder_read(
    decoder: number,
    output: number,
    outputFloats: number,
    samplesAt: number,
    rateAt: number,
    errorAt: number,
  ): number
  mpeg_frame_decoder_destroy(decoder: number): void
}

const noSamples = new Float32Array()

const ok = 0
const needMore = -10
const newFormat = -11

/**
 * A libmpg123 decoder. It calls the functions of the WebAssembly module directly: the package's own
 * method writes to the console, loops on persistent errors, and returns all decoded audio at once.
 */
async function openMpg123() {
  // Imported on first use to keep the start fast.
  const { MPEGDecoder } = await import('mpg123-decoder')
  const internals = new MPEGDecoder({ enableGapless: true }) as unknown as MpegDecoderInternals
  await internals.ready
  const module = internals._common.wasm
  const output = internals._output
  const inputAt = module.malloc(feedBytes)
  const input = new Uint8Array(module.HEAP, inputAt, feedBytes)
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
          output.ptr,
          output.len,
          resultAt,
          resultAt + 4,
          resultAt + 8,
        ),
      )
      const samples = meanOfHalves(module.HEAP, output.ptr, results[0] ?? 0)
      // Samples returned with a new format still have the old one.
      if (samples.length === 0 || status !== newFormat) rateHz = results[1] ?? 0
      const next =
        status === ok || status === newFormat ? 'read' : status === needMore ? 'feed' : 'error'
      return { samples, rateHz, next }
    },
    /** Resets it to its initial state. */
    restart(): void {
      destroy()
      module.mpeg_frame_decoder_create(resultAt + 12, 1)
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

/** The mean of the left plane and the following right plane. */
function meanOfHalves(heap: ArrayBuffer, at: number, samples: number): Float32Array {
  if (samples === 0) return noSamples
  const planes = new Float32Array(heap, at, 2 * samples)
  const mean = new Float32Array(samples)
  for (let index = 0; index < samples; index++) {
    mean[index] = ((planes[index] as number) + (planes[samples + index] as number)) / 2
  }
  return mean
}
