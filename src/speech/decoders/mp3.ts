import { createByteReader } from './byte-reader.ts'
import { type AudioDecoder, AudioError } from './decoder.ts'
import { countCorrupt, createFaults } from './faults.ts'
import { feedBytes, type Mpg123Read, openMpg123 } from './mpg123.ts'
import { unsupportedRate } from './pcm.ts'
import { createSampleOutput, sourceRateHzMax, sourceRateHzMin } from './sample-output.ts'

/** Titles and pictures, in front of the sound or between two files that were joined. */
const tagBytesMax = 16_777_216
/** So much without sound is a tag or a frame that would fill the decoder's memory. */
const soundlessBytesMax = 16_384

const tagHeadBytes = 10

/** MP3 from its beginning or from anywhere in it, one stream after the other. */
export async function openMp3Decoder(engineRateHz: number): Promise<AudioDecoder> {
  const mpg123 = await openMpg123()
  const faults = createFaults()
  const output = createSampleOutput(engineRateHz, faults)
  const reader = createByteReader()
  let sourceRateHz: number | null = null
  let tagBytes = 0
  let soundlessBytes = 0

  /** The bytes to be fed next, up to a tag; null when more are needed to say. */
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
      // The first byte of a mark stands in the sound too.
      if (tagBytes === 0) return reader.peek(tagAt + 1)
      if (tagAt === 0) continue
      // What stands before the tag goes first; then it is found again.
      tagBytes = 0
      return reader.peek(tagAt)
    }
  }

  function take({ samples, rateHz }: Mpg123Read): Iterable<Int16Array> {
    if (rateHz < sourceRateHzMin || rateHz > sourceRateHzMax) throw unsupportedRate(rateHz)
    sourceRateHz = rateHz
    soundlessBytes = 0
    return output.write(samples, rateHz)
  }

  function* feedAll(ended: boolean): Generator<Int16Array> {
    for (let bytes = nextFeed(ended); bytes !== null; bytes = nextFeed(ended)) {
      mpg123.feed(bytes)
      soundlessBytes += reader.drop(bytes.length)
      for (let next = 'read'; next !== 'feed'; ) {
        const read = mpg123.read()
        if (read.samples.length > 0) yield* take(read)
        next = read.next
        // An error that comes again and again ends here too.
        if (next === 'error') countCorrupt(faults)
      }
      if (soundlessBytes <= soundlessBytesMax) continue
      countCorrupt(faults)
      mpg123.restart()
      soundlessBytes = 0
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
 * The length of an ID3v2 tag whose head this is; 0 if it is none. So many of its bits are known that
 * no sound looks like it by chance.
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
