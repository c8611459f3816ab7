import { createByteReader, dropUntil } from './byte-reader.ts'
import { AudioError, type AudioFaults, countCorrupt, createGarbageCounter } from './decoder.ts'
import {
  childElements,
  type ElementHead,
  peekElementHead,
  readText,
  readUnsigned,
  readVint,
} from './ebml.ts'
import {
  isOpusHead,
  type OpusDemuxer,
  type OpusHead,
  type OpusPart,
  plainOpusHead,
  readOpusHead,
} from './opus-head.ts'

/** Elements read as a whole; longer blocks can only belong to another track. */
const elementBytesMax = 65_536
/** Elements skipped unread, such as pictures and indexes. */
const skippedBytesMax = 16_777_216
const tracksMax = 64

const ids = {
  ebml: 0x1a45dfa3,
  segment: 0x18538067,
  tracks: 0x1654ae6b,
  trackEntry: 0xae,
  cluster: 0x1f43b675,
  simpleBlock: 0xa3,
  blockGroup: 0xa0,
  block: 0xa1,
  discardPadding: 0x75a2,
  number: 0xd7,
  type: 0x83,
  codec: 0x86,
  codecPrivate: 0x63a2,
  codecDelay: 0x56aa,
  contentEncodings: 0x6d80,
}

/** Their contents are read as siblings, so their ends do not matter. */
const openedIds = new Set([ids.segment, ids.tracks, ids.cluster])
const readIds = new Set([ids.ebml, ids.trackEntry, ids.simpleBlock, ids.blockGroup])
/** Other valid elements: seek head, info, cues, tags, chapters, attachments, … */
const skippedIds = new Set([
  ...[0x114d9b74, 0x1549a966, 0x1c53bb6b, 0x1254c367, 0x1043a770, 0x1941a469],
  ...[0xec, 0xbf, 0xe7, 0xab, 0xa7, 0x5854, 0xaf],
])

/** Where reading resumes after invalid data: a cluster or a new file. */
const resumeMarks = [
  [0x1f, 0x43, 0xb6, 0x75],
  [0x1a, 0x45, 0xdf, 0xa3],
]

/** WebM with Opus, from a file or a recorder; recordings may be concatenated. */
export function createWebmDemuxer(faults: AudioFaults): OpusDemuxer {
  const reader = createByteReader()
  const garbage = createGarbageCounter(faults)
  let skipBytes = 0
  let searching = false
  let tracks: WebmTrack[] = []
  let track: WebmTrack | null = null

  function* take({ id }: ElementHead, content: Uint8Array): Generator<OpusPart> {
    if (id === ids.ebml) {
      tracks = []
      track = null
    } else if (id === ids.trackEntry) {
      if (tracks.length < tracksMax) tracks.push(readTrack(content))
    } else if (track !== null) {
      yield* id === ids.blockGroup ? readGroup(content, track) : readBlock(content, track, 0)
    }
  }

  function* begin(): Generator<OpusPart> {
    if (track !== null) return
    if (tracks.length === 0) {
      throw new AudioError('bad_audio', 'The WebM stream does not start with its headers.')
    }
    track = chooseTrack(tracks)
    yield { type: 'head', head: trackHead(track) }
  }

  /** The next element to process; null when more bytes are needed. */
  const nextStep = (): ElementHead | 'invalid' | 'skipped' | null => {
    if (skipBytes > 0) {
      skipBytes -= reader.drop(skipBytes)
      return skipBytes > 0 ? null : 'skipped'
    }
    if (searching) {
      const { dropped, found } = dropUntil(reader, resumeMarks)
      garbage.skipped(dropped)
      searching = !found
      return found ? 'skipped' : null
    }
    const head = peekElementHead(reader)
    if (head === null || head === 'invalid') return head
    if (openedIds.has(head.id)) return head
    const { size } = head
    const known = readIds.has(head.id) || skippedIds.has(head.id)
    if (!known || size === null || size > skippedBytesMax) return 'invalid'
    if (readIds.has(head.id) && size <= elementBytesMax) return head
    // With a single track, an oversized block is corrupt.
    if (readIds.has(head.id) && tracks.length === 1) countCorrupt(faults)
    reader.drop(head.headBytes)
    skipBytes = size
    return 'skipped'
  }

  return {
    *parts(bytes) {
      reader.accept(bytes)
      for (;;) {
        const step = nextStep()
        if (step === null) return
        if (step === 'skipped') continue
        if (step === 'invalid') {
          garbage.skipped(reader.drop(1))
          searching = true
          continue
        }
        if (openedIds.has(step.id)) {
          reader.drop(step.headBytes)
          if (step.id === ids.cluster) yield* begin()
          continue
        }
        const length = step.headBytes + (step.size ?? 0)
        const element = reader.peek(length)
        if (element === null) return
        garbage.found()
        yield* take(step, element.subarray(step.headBytes))
        reader.drop(length)
      }
    },
  }
}

function* readGroup(content: Uint8Array, track: WebmTrack): Generator<OpusPart> {
  let block: Uint8Array | null = null
  let paddingNs = 0
  for (const { id, content: field } of childElements(content)) {
    if (id === ids.block) block = field
    if (id === ids.discardPadding) paddingNs = readSigned(field)
  }
  if (block !== null) yield* readBlock(block, track, samples48(Math.max(0, paddingNs)))
}

/** Track number, two bytes of time, flags, and one packet. */
function* readBlock(block: Uint8Array, track: WebmTrack, trimmed48: number): Generator<OpusPart> {
  const number = readVint(block)
  if (number === null || number.value !== track.number) return
  const flags = block[number.bytes + 2]
  if (flags === undefined) return
  if ((flags & 0x06) !== 0) {
    throw new AudioError('unsupported_audio', 'WebM with laced blocks is not supported.')
  }
  yield { type: 'packet', packet: block.subarray(number.bytes + 3), trimmed48 }
}

function readSigned(bytes: Uint8Array): number {
  const value = readUnsigned(bytes)
  return (bytes[0] ?? 0) >= 0x80 ? value - 256 ** bytes.length : value
}

type WebmTrack = {
  readonly number: number
  readonly audio: boolean
  readonly codec: string
  /** The codec header, and the container's delay. */
  readonly codecPrivate: Uint8Array | null
  readonly codecDelayNs: number | null
  readonly encoded: boolean
}

const audioType = 2
const opusCodec = 'A_OPUS'
/** More than the header of any supported Opus stream. */
const codecPrivateBytesMax = 64

/** The content of a TrackEntry. */
function readTrack(content: Uint8Array): WebmTrack {
  const fields = new Map([...childElements(content)].map(({ id, content }) => [id, content]))
  const number = (id: number) => {
    const field = fields.get(id)
    return field === undefined ? null : readUnsigned(field)
  }
  return {
    number: number(ids.number) ?? 0,
    audio: number(ids.type) === audioType,
    codec: readText(fields.get(ids.codec) ?? new Uint8Array()),
    // Copied, because the head is read after the element's bytes are gone.
    codecPrivate: fields.get(ids.codecPrivate)?.slice(0, codecPrivateBytesMax) ?? null,
    codecDelayNs: number(ids.codecDelay),
    encoded: fields.has(ids.contentEncodings),
  }
}

/** The first audio track with Opus; throws an `AudioError` if there is none. */
function chooseTrack(tracks: readonly WebmTrack[]): WebmTrack {
  const audio = tracks.filter((track) => track.audio)
  const track = audio.find(({ codec }) => codec === opusCodec)
  if (track === undefined) throw noOpus(audio[0]?.codec)
  if (track.encoded) {
    throw new AudioError(
      'unsupported_audio',
      'The WebM track is encrypted or additionally compressed.',
    )
  }
  return track
}

function trackHead(track: WebmTrack): OpusHead {
  const known = track.codecPrivate !== null && isOpusHead(track.codecPrivate)
  const head =
    known && track.codecPrivate !== null ? readOpusHead(track.codecPrivate) : plainOpusHead
  if (track.codecDelayNs === null) return head
  return { ...head, preSkip48: samples48(track.codecDelayNs) }
}

function samples48(nanoseconds: number): number {
  return Math.round((nanoseconds * 48) / 1_000_000)
}

function noOpus(codec: string | undefined): AudioError {
  if (codec === undefined) {
    return new AudioError('unsupported_audio', 'The WebM stream has no audio track.')
  }
  return new AudioError('unsupported_audio', `WebM must contain Opus; this contains ${codec}.`, {
    codec,
  })
}
