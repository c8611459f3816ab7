import { createByteReader } from './byte-reader.ts'
import { AudioError, type AudioFaults, countCorrupt, createGarbageCounter } from './decoder.ts'
import { dropUntil } from './drop-until.ts'
import { readMarked, readUnsigned, readVint, vintBytes } from './ebml-numbers.ts'
import {
  isOpusHead,
  type OpusDemuxer,
  type OpusHead,
  type OpusPart,
  plainOpusHead,
  readOpusHead,
} from './opus-head.ts'
import { createWebmClock, samplesOf, type WebmClock } from './webm-clock.ts'
import { splitLacedBlock } from './webm-lacing.ts'

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
  info: 0x1549a966,
  timestampScale: 0x2ad7b1,
  timestamp: 0xe7,
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
const readIds = new Set([
  ...[ids.ebml, ids.info, ids.trackEntry],
  ...[ids.timestamp, ids.simpleBlock, ids.blockGroup],
])
/** Other valid elements: seek head, cues, tags, chapters, attachments, … */
const skippedIds = new Set([
  ...[0x114d9b74, 0x1c53bb6b, 0x1254c367, 0x1043a770, 0x1941a469],
  ...[0xec, 0xbf, 0xab, 0xa7, 0x5854, 0xaf],
])

const empty = new Uint8Array()

/** Where reading resumes after invalid data: a cluster or a new file. */
const resumeMarks = ['1f43b675', '1a45dfa3'].map((id) => Buffer.from(id, 'hex'))

/** WebM with Opus, from a file or a recorder; recordings may be concatenated. */
export function createWebmDemuxer(faults: AudioFaults): OpusDemuxer {
  const reader = createByteReader()
  const garbage = createGarbageCounter(faults)
  let skipBytes = 0
  let searching = false
  let tracks: WebmTrack[] = []
  let track: WebmTrack | null = null
  let clock = createWebmClock(faults)

  function* take(id: number, content: Uint8Array): Generator<OpusPart> {
    if (id === ids.ebml) {
      tracks = []
      track = null
      clock = createWebmClock(faults)
    } else if (id === ids.info) {
      const fields = [...childElements(content)]
      const scale = fields.find(({ id }) => id === ids.timestampScale)
      if (scale !== undefined) clock.setScale(readUnsigned(scale.content))
    } else if (id === ids.timestamp) {
      clock.beginCluster(readUnsigned(content))
    } else if (id === ids.trackEntry) {
      if (tracks.length < tracksMax) tracks.push(readTrack(content))
    } else if (track !== null) {
      yield* id === ids.blockGroup
        ? readGroup(content, track, clock, faults)
        : readBlock(content, track, 0, clock, faults)
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

  /** Drops invalid and unneeded data; false when more bytes are needed. */
  const skip = (): boolean => {
    skipBytes -= reader.drop(skipBytes)
    if (skipBytes > 0 || !searching) return skipBytes === 0
    const { dropped, found } = dropUntil(reader, resumeMarks)
    garbage.skipped(dropped)
    searching = !found
    return found
  }

  return function* (bytes) {
    reader.accept(bytes)
    while (skip()) {
      const head = readElementHead(
        reader.peek(elementHeadBytesMax) ?? reader.peek(reader.available) ?? empty,
      )
      if (head === null) return
      const { id, size, headBytes } = head
      const isRead = readIds.has(id)
      if (openedIds.has(id)) {
        reader.drop(headBytes)
        if (id === ids.cluster) yield* begin()
      } else if (size > skippedBytesMax || !(isRead || skippedIds.has(id))) {
        garbage.skipped(reader.drop(1))
        searching = true
      } else if (isRead && size <= elementBytesMax) {
        const element = reader.peek(headBytes + size)
        if (element === null) return
        garbage.found()
        yield* take(id, element.subarray(headBytes))
        reader.drop(headBytes + size)
      } else {
        // With a single track, an oversized block is corrupt.
        if (isRead && tracks.length === 1) countCorrupt(faults)
        reader.drop(headBytes)
        skipBytes = size
      }
    }
  }
}

function* readGroup(
  content: Uint8Array,
  track: WebmTrack,
  clock: WebmClock,
  faults: AudioFaults,
): Generator<OpusPart> {
  let block: Uint8Array | null = null
  let paddingNs = 0
  for (const { id, content: field } of childElements(content)) {
    if (id === ids.block) block = field
    if (id === ids.discardPadding) paddingNs = readSigned(field)
  }
  if (block === null) return
  yield* readBlock(block, track, samplesOf(Math.max(0, paddingNs)), clock, faults)
}

/** Track number, two bytes of time, flags, and the packets; the last one is trimmed. */
function* readBlock(
  block: Uint8Array,
  track: WebmTrack,
  trimmed48: number,
  clock: WebmClock,
  faults: AudioFaults,
): Generator<OpusPart> {
  const number = readVint(block)
  if (number === null || number.value !== track.number) return
  const flags = block[number.bytes + 2]
  if (flags === undefined) return
  const packets = splitLacedBlock(flags, block.subarray(number.bytes + 3))
  if (packets === null) return countCorrupt(faults)
  const time = block.subarray(number.bytes, number.bytes + 2)
  const missing48 = clock.advance(readSigned(time), packets)
  if (missing48 > 0) yield { type: 'gap', missing48 }
  for (const [at, packet] of packets.entries()) {
    yield { type: 'packet', packet, trimmed48: at === packets.length - 1 ? trimmed48 : 0 }
  }
}

function readSigned(bytes: Uint8Array): number {
  const value = readUnsigned(bytes)
  return (bytes[0] ?? 0) >= 0x80 ? value - 256 ** bytes.length : value
}

const audioType = 2
const opusCodec = 'A_OPUS'
/** More than the header of any supported Opus stream. */
const codecPrivateBytesMax = 64

type WebmTrack = ReturnType<typeof readTrack>

/** The content of a TrackEntry. */
function readTrack(content: Uint8Array) {
  const fields = new Map([...childElements(content)].map(({ id, content }) => [id, content]))
  const number = (id: number) => {
    const field = fields.get(id)
    return field === undefined ? null : readUnsigned(field)
  }
  return {
    number: number(ids.number) ?? 0,
    audio: number(ids.type) === audioType,
    codec: readText(fields.get(ids.codec) ?? empty),
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
    const message = 'The WebM track is encrypted or additionally compressed.'
    throw new AudioError('unsupported_audio', message)
  }
  return track
}

function trackHead(track: WebmTrack): OpusHead {
  const { codecPrivate } = track
  const isKnown = codecPrivate !== null && isOpusHead(codecPrivate)
  const head = isKnown ? readOpusHead(codecPrivate) : plainOpusHead
  if (track.codecDelayNs === null) return head
  return { ...head, preSkip48: samplesOf(track.codecDelayNs) }
}

function noOpus(codec: string | undefined): AudioError {
  if (codec === undefined) {
    return new AudioError('unsupported_audio', 'The WebM stream has no audio track.')
  }
  return new AudioError('unsupported_audio', `WebM must contain Opus; this contains ${codec}.`, {
    codec,
  })
}

/** The header of an EBML element (RFC 8794). */
type ElementHead = {
  /** 0 if the header is invalid. */
  readonly id: number
  /** Infinite if unknown or invalid. */
  readonly size: number
  readonly headBytes: number
}

const invalidHead: ElementHead = { id: 0, size: Number.POSITIVE_INFINITY, headBytes: 0 }

const elementHeadBytesMax = 12

/** The header at the start of `bytes`; null if it is incomplete. */
function readElementHead(bytes: Uint8Array): ElementHead | null {
  if (bytes[0] === undefined) return null
  const idBytes = vintBytes(bytes[0])
  if (idBytes > 4) return invalidHead
  const sizeStart = bytes[idBytes]
  if (sizeStart === undefined) return null
  const sizeBytes = vintBytes(sizeStart)
  if (sizeBytes > 8) return invalidHead
  const headBytes = idBytes + sizeBytes
  if (bytes.length < headBytes) return null
  const size = readMarked(bytes.subarray(idBytes, headBytes))
  return {
    id: readUnsigned(bytes.subarray(0, idBytes)),
    // All bits set: unknown size.
    size: size >= 2 ** (7 * sizeBytes) - 1 ? Number.POSITIVE_INFINITY : size,
    headBytes,
  }
}

/** The elements in `content`, up to the first that is incomplete. */
function* childElements(content: Uint8Array): Generator<{ id: number; content: Uint8Array }> {
  let rest = content
  for (;;) {
    const head = readElementHead(rest)
    if (head === null || head.headBytes + head.size > rest.length) return
    const end = head.headBytes + head.size
    yield { id: head.id, content: rest.subarray(head.headBytes, end) }
    rest = rest.subarray(end)
  }
}

function readText(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes.subarray(0, 64)).replace(/\0.*$/s, '')
}
