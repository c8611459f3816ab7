import { createByteReader } from './byte-reader.ts'
import { AudioError, countCorrupt, type FormatDecoder } from './decoder.ts'
import { requireSupportedRate, type SampleOutput } from './sample-output.ts'
import { feedBytes, openMpg123 } from './wasm-decoders.ts'

/** Titles and pictures, before the audio or between concatenated files. */
const tagBytesMax = 16_777_216
/** More bytes without audio are a tag or frame that would fill the decoder's memory. */
const silentBytesMax = 16_384

const tagHeadBytes = 10

/** MP3, starting anywhere, including concatenated streams. */
export async function openMp3Decoder(output: SampleOutput): Promise<FormatDecoder> {
  const mpg123 = await openMpg123()
  const reader = createByteReader()
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

  function* feedAll(ended: boolean): Generator<Int16Array> {
    for (let bytes = nextFeed(ended); bytes !== null; bytes = nextFeed(ended)) {
      mpg123.feed(bytes)
      silentBytes += reader.drop(bytes.length)
      for (let next = 'read'; next !== 'feed'; ) {
        const read = mpg123.read()
        if (read.samples.length > 0) {
          requireSupportedRate(read.rateHz)
          silentBytes = 0
          yield* output.write(read.samples, read.rateHz)
        }
        next = read.next
        // Repeated errors end here too.
        if (next === 'error') countCorrupt(output.faults)
      }
      if (silentBytes <= silentBytesMax) continue
      countCorrupt(output.faults)
      mpg123.restart()
      silentBytes = 0
    }
  }

  return {
    decode(bytes) {
      reader.accept(bytes)
      return feedAll(false)
    },
    end: () => feedAll(true),
    close: mpg123.close,
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
