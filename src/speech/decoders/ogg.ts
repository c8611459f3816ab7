import { AudioError, type AudioFaults } from './decoder.ts'
import { createOggPackets, type OggPackets, opusTags } from './ogg-packets.ts'
import { createOggPages, type OggPage } from './ogg-page.ts'
import { isOpusHead, packetSamples48, readOpusHead, startsWithText } from './opus-head.ts'
import type { OpusDemuxer, OpusPart } from './opus-parts.ts'

/** The one Opus stream that is being played. A recorder that starts again begins another. */
type Link = {
  readonly serial: number
  readonly packets: OggPackets
  /** No packet came after its head; the next one holds the tags. */
  atTags: boolean
  /** The time at the end of the last page with sound. */
  granule48: number
}

/** Ogg (RFC 3533) with Opus in it (RFC 7845), also one stream after the other. */
export function createOggDemuxer(faults: AudioFaults): OpusDemuxer {
  const pages = createOggPages(faults)
  let link: Link | null = null
  let otherCodec: string | null = null

  function* begin(page: OggPage): Generator<OpusPart> {
    // Streams side by side begin together; of those the first one with Opus is taken.
    if (link?.atTags && page.serial !== link.serial) return
    if (!isOpusHead(page.body)) {
      link = null
      otherCodec = codecName(page.body)
      return
    }
    const packets = createOggPackets(page.sequence, faults)
    const head = readOpusHead(packets(page)[0] ?? page.body)
    link = { serial: page.serial, packets, atTags: true, granule48: 0 }
    yield { type: 'head', head }
  }

  return {
    *parts(bytes) {
      for (const page of pages(bytes)) {
        if (page.first) yield* begin(page)
        else if (link === null) throw noOpus(otherCodec)
        else if (page.serial === link.serial) yield* readSound(link, page)
      }
    },
  }
}

function* readSound(link: Link, page: OggPage): Generator<OpusPart> {
  const packets = link.packets(page)
  const [first] = packets
  if (link.atTags && first !== undefined) {
    link.atTags = false
    if (startsWithText(first, opusTags)) packets.shift()
  }
  const lengths = packets.map(packetSamples48)
  const pageSamples48 = lengths.reduce((sum, length) => sum + length, 0)
  // Only the last page may end before its packets do.
  let left48 =
    page.last && page.granule !== null ? Math.max(0, page.granule - link.granule48) : pageSamples48
  if (page.granule !== null && packets.length > 0) link.granule48 = page.granule
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
    return new AudioError('bad_audio', 'The Ogg stream does not begin with its headers.')
  }
  return new AudioError('unsupported_audio', `Ogg is taken with Opus; this holds ${otherCodec}.`, {
    codec: otherCodec,
  })
}
