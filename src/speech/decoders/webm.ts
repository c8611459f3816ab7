import { createByteReader } from './byte-reader.ts'
import { dropUntil } from './byte-search.ts'
import { AudioError, type AudioFaults } from './decoder.ts'
import { childElements, type ElementHead, peekElementHead, readUnsigned, readVint } from './ebml.ts'
import { countCorrupt, createGarbageCount } from './faults.ts'
import type { OpusDemuxer, OpusPart } from './opus-parts.ts'
import { chooseTrack, readTrack, samples48, trackHead, type WebmTrack } from './webm-track.ts'

/** What is read as a whole; longer blocks can only be of another track. */
const elementBytesMax = 65_536
/** What is passed over unread, such as pictures and indexes. */
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
}

/** Their contents are read as if they stood beside them, so it does not matter where they end. */
const opened = new Set([ids.segment, ids.tracks, ids.cluster])
const read = new Set([ids.ebml, ids.trackEntry, ids.simpleBlock, ids.blockGroup])
/** Everything else that may stand there: seek head, info, cues, tags, chapters, attachments, … */
const passedOver = new Set([
  ...[0x114d9b74, 0x1549a966, 0x1c53bb6b, 0x1254c367, 0x1043a770, 0x1941a469],
  ...[0xec, 0xbf, 0xe7, 0xab, 0xa7, 0x5854, 0xaf],
])

/** From where reading can go on after what was not understood. */
const resumeMarks = [
  [0x1f, 0x43, 0xb6, 0x75],
  [0x1a, 0x45, 0xdf, 0xa3],
]

/** WebM with Opus in it, from a file or a recorder; one recording may follow another. */
export function createWebmDemuxer(faults: AudioFaults): OpusDemuxer {
  const reader = createByteReader()
  const garbage = createGarbageCount(faults)
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
      throw new AudioError('bad_audio', 'The WebM does not begin with its headers.')
    }
    track = chooseTrack(tracks)
    yield { type: 'head', head: trackHead(track) }
  }

  /** What is to be done with the bytes that stand next; null when more are needed. */
  const nextStep = (): ElementHead | 'invalid' | 'passed' | null => {
    if (skipBytes > 0) {
      skipBytes -= reader.drop(skipBytes)
      return skipBytes > 0 ? null : 'passed'
    }
    if (searching) {
      const { dropped, found } = dropUntil(reader, resumeMarks)
      garbage.skipped(dropped)
      searching = !found
      return found ? 'passed' : null
    }
    const head = peekElementHead(reader)
    if (head === null || head === 'invalid') return head
    if (opened.has(head.id)) return head
    const { size } = head
    const known = read.has(head.id) || passedOver.has(head.id)
    if (!known || size === null || size > skippedBytesMax) return 'invalid'
    if (read.has(head.id) && size <= elementBytesMax) return head
    // Where no other track is that it could be of, it is a block of ours that cannot be one.
    if (read.has(head.id) && tracks.length === 1) countCorrupt(faults)
    reader.drop(head.headBytes)
    skipBytes = size
    return 'passed'
  }

  return {
    *parts(bytes) {
      reader.accept(bytes)
      for (;;) {
        const step = nextStep()
        if (step === null) return
        if (step === 'passed') continue
        if (step === 'invalid') {
          garbage.skipped(reader.drop(1))
          searching = true
          continue
        }
        if (opened.has(step.id)) {
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

/** Track number, two bytes of time, flags, and what is in it: one packet. */
function* readBlock(block: Uint8Array, track: WebmTrack, trimmed48: number): Generator<OpusPart> {
  const number = readVint(block)
  if (number === null || number.value !== track.number) return
  const flags = block[number.bytes + 2]
  if (flags === undefined) return
  if ((flags & 0x06) !== 0) {
    throw new AudioError(
      'unsupported_audio',
      'The blocks of the WebM are laced; that is not taken.',
    )
  }
  yield { type: 'packet', packet: block.subarray(number.bytes + 3), trimmed48 }
}

function readSigned(bytes: Uint8Array): number {
  const value = readUnsigned(bytes)
  return (bytes[0] ?? 0) >= 0x80 ? value - 256 ** bytes.length : value
}
