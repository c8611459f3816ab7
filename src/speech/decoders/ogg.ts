import { oggChecksum, oggChecksumAt } from '#lib/ogg-checksum.ts'
import { createByteReader } from './byte-reader.ts'
import { AudioError, type AudioFaults, countCorrupt, createGarbageCounter } from './decoder.ts'
import { dropUntil } from './drop-until.ts'
import {
  isOpusHead,
  jitter48Max,
  type OpusDemuxer,
  type OpusPart,
  packetSamples48,
  readOpusHead,
  startsWithText,
} from './opus-head.ts'
import { packetBytesMax } from './wasm-decoders.ts'

/** The Opus stream in progress; a recorder that restarts begins another. */
type OggStream = {
  readonly serial: number
  readonly packets: ReturnType<typeof createOggPackets>
  /** The next packet contains the tags. */
  atTags: boolean
  /** The time at the end of the last page with audio; null before the first. */
  granule48: number | null
}

/** Ogg (RFC 3533) with Opus (RFC 7845), including chained streams. */
export function createOggDemuxer(faults: AudioFaults): OpusDemuxer {
  const pages = createOggPages(faults)
  let stream: OggStream | null = null
  let otherCodec: string | null = null

  function* begin(page: OggPage): Generator<OpusPart> {
    // Multiplexed streams start together; the first one with Opus is used.
    if (stream?.atTags && page.serial !== stream.serial) return
    if (!isOpusHead(page.body)) {
      stream = null
      otherCodec = codecName(page.body)
      return
    }
    const packets = createOggPackets(page.sequence, faults)
    const head = readOpusHead(packets(page).packets[0] ?? page.body)
    stream = { serial: page.serial, packets, atTags: true, granule48: null }
    yield { type: 'head', head }
  }

  return function* (bytes) {
    for (const page of pages(bytes)) {
      if (page.first) yield* begin(page)
      else if (stream === null) throw noOpus(otherCodec)
      else if (page.serial === stream.serial) yield* readAudio(stream, page, faults)
    }
  }
}

function* readAudio(stream: OggStream, page: OggPage, faults: AudioFaults): Generator<OpusPart> {
  const { packets, isAfterLoss } = stream.packets(page)
  const [first] = packets
  if (stream.atTags && first !== undefined) {
    stream.atTags = false
    if (startsWithText(first, opusTags)) packets.shift()
  }
  if (packets.length === 0) return
  const lengths = packets.map(packetSamples48)
  const pageSamples48 = lengths.reduce((sum, length) => sum + length, 0)
  // A stream may be joined at any time, unless its first page is known to be lost.
  const first48 = isAfterLoss ? 0 : Math.max(0, (page.granule ?? 0) - pageSamples48)
  const start48 = stream.granule48 ?? first48
  const end48 = page.granule ?? start48 + pageSamples48
  const missing48 = end48 - start48 - pageSamples48
  if (missing48 > (isAfterLoss ? 0 : jitter48Max)) {
    if (!isAfterLoss) faults.gaps += 1
    yield { type: 'gap', missing48 }
  }
  // Only the last page may end before its packets.
  let left48 = page.last ? Math.max(0, end48 - start48) : pageSamples48
  stream.granule48 = end48
  for (const [index, packet] of packets.entries()) {
    const length = lengths[index] ?? 0
    const kept = Math.min(length, left48)
    left48 -= kept
    yield { type: 'packet', packet, trimmed48: length - kept }
  }
}

const codecMarks = {
  vorbis: '\x01vorbis',
  flac: '\x7fFLAC',
  speex: 'Speex   ',
  theora: '\x80theora',
}

function codecName(packet: Uint8Array): string {
  const known = Object.entries(codecMarks).find(([, mark]) => startsWithText(packet, mark))
  return known?.[0] ?? 'unknown'
}

function noOpus(otherCodec: string | null): AudioError {
  if (otherCodec === null) {
    return new AudioError('bad_audio', 'The Ogg stream does not start with its headers.')
  }
  const message = `Ogg must contain Opus; this contains ${otherCodec}.`
  return new AudioError('unsupported_audio', message, { codec: otherCodec })
}

/** The start of the packet after the head. */
const opusTags = 'OpusTags'

/** Assembles the packets that each page of a logical stream completes. */
function createOggPackets(firstSequence: number, faults: AudioFaults) {
  let expected = firstSequence
  /** The start of a packet that continues on the next page; null if lost or too long. */
  let open: Uint8Array | null = null
  /** Pages are missing since the last packet. */
  let isAfterLoss = false

  const join = (part: Uint8Array): Uint8Array | null => {
    if (open === null) return null
    if (open.length + part.length > packetBytesMax) {
      // Tags may contain pictures, which are not needed.
      if (!startsWithText(open, opusTags)) countCorrupt(faults)
      return null
    }
    return Buffer.concat([open, part])
  }

  const complete = (page: OggPage): Uint8Array[] => {
    const { packets, rest } = splitSegments(page)
    const [head, ...others] = packets
    if (!page.continued) {
      open = rest
      return packets
    }
    if (head === undefined) {
      open = join(rest ?? page.body)
      return []
    }
    const whole = join(head)
    open = rest
    return whole === null ? others : [whole, ...others]
  }

  return (page: OggPage) => {
    const missing = (page.sequence - expected) >>> 0
    // An earlier number is a repetition or a restart: one gap in either case.
    if (missing !== 0) faults.gaps += missing < 2 ** 31 ? missing : 1
    expected = (page.sequence + 1) >>> 0
    if (missing !== 0 || !page.continued) open = null
    const hadLoss = isAfterLoss || missing !== 0
    const packets = complete(page)
    isAfterLoss = hadLoss && packets.length === 0
    return { packets, isAfterLoss: hadLoss }
  }
}

/** The packets that end on a page (the first may be a continuation) and the start of another. */
function splitSegments(page: OggPage): { packets: Uint8Array[]; rest: Uint8Array | null } {
  const packets: Uint8Array[] = []
  let from = 0
  let to = 0
  let ended = true
  for (const length of page.lacing) {
    to += length
    ended = length < 255
    if (!ended) continue
    packets.push(page.body.subarray(from, to))
    from = to
  }
  return { packets, rest: ended ? null : page.body.slice(from) }
}

const capture = Buffer.from('OggS')
const headBytes = 27

/** Splits bytes into pages. Corrupt data is counted and skipped up to the next page. */
function createOggPages(faults: AudioFaults): (bytes: Uint8Array) => Iterable<OggPage> {
  const reader = createByteReader()
  const garbage = createGarbageCounter(faults)

  /** The length of the next page, 0 if there is none; null when more bytes are needed. */
  const pageBytes = (): number | null => {
    const head = reader.peek(headBytes)
    if (head === null) return null
    if (!capture.every((byte, at) => head[at] === byte) || head[4] !== 0) return 0
    const segments = head[26] ?? 0
    const lacing = reader.peek(headBytes + segments)?.subarray(headBytes)
    if (lacing === undefined) return null
    return headBytes + segments + lacing.reduce((sum, length) => sum + length, 0)
  }

  return function* (bytes) {
    reader.accept(bytes)
    for (;;) {
      const length = pageBytes()
      if (length === null) return
      const page = length === 0 ? null : reader.peek(length)
      if (page === null && length !== 0) return
      if (page !== null && oggChecksum(page) === storedChecksum(page)) {
        garbage.found()
        yield readPage(page)
        reader.drop(length)
      } else {
        if (page !== null) garbage.mistaken()
        garbage.skipped(reader.drop(1))
        garbage.skipped(dropUntil(reader, [capture]).dropped)
      }
    }
  }
}

type OggPage = ReturnType<typeof readPage>

/** A page of an Ogg stream (RFC 3533, 6) with a valid checksum. */
function readPage(page: Uint8Array) {
  const view = new DataView(page.buffer, page.byteOffset, page.byteLength)
  const flags = view.getUint8(5)
  const granule = Number(view.getBigInt64(6, true))
  const bodyAt = headBytes + view.getUint8(26)
  return {
    /** It starts with the rest of a packet. */
    continued: (flags & 1) !== 0,
    /** It starts or ends its logical stream. */
    first: (flags & 2) !== 0,
    last: (flags & 4) !== 0,
    /** The time at its end in samples; null if no packet ends on it. */
    granule: granule >= 0 && Number.isSafeInteger(granule) ? granule : null,
    serial: view.getUint32(14, true),
    sequence: view.getUint32(18, true),
    /** The lengths of its segments. */
    lacing: page.subarray(headBytes, bodyAt),
    /** The segments; like `lacing` valid until the next page is requested. */
    body: page.subarray(bodyAt),
  }
}

function storedChecksum(page: Uint8Array): number {
  return new DataView(page.buffer, page.byteOffset + oggChecksumAt, 4).getUint32(0, true)
}
