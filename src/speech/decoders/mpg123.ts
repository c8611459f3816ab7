/**
 * One libmpg123. It is driven through the functions of its WebAssembly module: the package's own
 * method writes to the console, goes on for as long as an error does, and gives out at once whatever
 * the bytes unfold to.
 */
export type Mpg123 = {
  /** At most `feedBytes`; `read` until it asks for more, then feed it again. */
  feed(bytes: Uint8Array): void
  read(): Mpg123Read
  /** Forgets everything, as if it had just been opened. */
  restart(): void
  close(): void
}

export type Mpg123Read = {
  /** The mean of both channels, valid until the next call; may be empty. */
  readonly samples: Float32Array
  readonly rateHz: number
  readonly next: 'read' | 'feed' | 'error'
}

/**
 * Where bytes are corrupt, what libmpg123 makes of them depends on how they are fed to it. Fed by so
 * many at a time, always, it makes the same of them however they arrive; most frames are a multiple
 * of it, so that none waits for its last bytes.
 */
export const feedBytes = 8

/** What `mpg123-decoder` holds inside. Its version is pinned; the tests find out when this changes. */
type MpegDecoderInside = {
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

export async function openMpg123(): Promise<Mpg123> {
  // Only when it is needed: a start has no time for it.
  const { MPEGDecoder } = await import('mpg123-decoder')
  const inside = new MPEGDecoder({ enableGapless: true }) as unknown as MpegDecoderInside
  await inside.ready
  const module = inside._common.wasm
  const output = inside._output
  const inputAt = module.malloc(feedBytes)
  const input = new Uint8Array(module.HEAP, inputAt, feedBytes)
  const wordsAt = module.malloc(4 * 4)
  const words = new Uint32Array(module.HEAP, wordsAt, 4)
  let decoder = inside._decoder
  let rateHz = 0

  const destroy = () => {
    if (decoder !== 0) module.mpeg_frame_decoder_destroy(decoder)
    decoder = 0
  }

  return {
    feed(bytes) {
      if (decoder === 0) return
      input.set(bytes)
      module.mpeg_decoder_feed(decoder, inputAt, bytes.length)
    },
    read() {
      if (decoder === 0) return { samples: noSamples, rateHz, next: 'feed' }
      words[0] = 0
      const status = quietly(() =>
        module.mpeg_decoder_read(
          decoder,
          output.ptr,
          output.len,
          wordsAt,
          wordsAt + 4,
          wordsAt + 8,
        ),
      )
      const samples = meanOfHalves(module.HEAP, output.ptr, words[0] ?? 0)
      // What comes together with a new format is still of the old one.
      if (samples.length === 0 || status !== newFormat) rateHz = words[1] ?? 0
      const next =
        status === ok || status === newFormat ? 'read' : status === needMore ? 'feed' : 'error'
      return { samples, rateHz, next }
    },
    restart() {
      destroy()
      module.mpeg_frame_decoder_create(wordsAt + 12, 1)
      decoder = words[3] ?? 0
    },
    close: destroy,
  }
}

/** libmpg123 tells the console of some of what it meets, whatever it is asked to do. */
function quietly<T>(run: () => T): T {
  const { error } = console
  console.error = () => {}
  try {
    return run()
  } finally {
    console.error = error
  }
}

/** The left channel and then the right one → their mean. */
function meanOfHalves(heap: ArrayBuffer, at: number, samples: number): Float32Array {
  if (samples === 0) return noSamples
  const planes = new Float32Array(heap, at, 2 * samples)
  const mean = new Float32Array(samples)
  for (let index = 0; index < samples; index++) {
    mean[index] = ((planes[index] as number) + (planes[samples + index] as number)) / 2
  }
  return mean
}
