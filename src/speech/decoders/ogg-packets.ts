import type { AudioFaults } from './decoder.ts'
import { countCorrupt } from './faults.ts'
import { packetBytesMax } from './libopus.ts'
import type { OggPage } from './ogg-page.ts'
import { startsWithText } from './opus-head.ts'

/** How the packet begins that follows the head. */
export const opusTags = 'OpusTags'

/** The pages of one logical stream in order → the packets that each of them completes. */
export type OggPackets = (page: OggPage) => Uint8Array[]

export function createOggPackets(firstSequence: number, faults: AudioFaults): OggPackets {
  let expected = firstSequence
  /** The beginning of a packet that goes on on the next page; null where it is lost or too long. */
  let open: Uint8Array | null = null

  const join = (part: Uint8Array): Uint8Array | null => {
    if (open === null) return null
    if (open.length + part.length > packetBytesMax) {
      // Tags may hold pictures; nobody asks for them.
      if (!startsWithText(open, opusTags)) countCorrupt(faults)
      return null
    }
    const joined = new Uint8Array(open.length + part.length)
    joined.set(open)
    joined.set(part, open.length)
    return joined
  }

  return (page) => {
    const missing = (page.sequence - expected) >>> 0
    // A number from before is a repetition, or another counting: one break in either case.
    if (missing !== 0) faults.gaps += missing < 2 ** 31 ? missing : 1
    expected = (page.sequence + 1) >>> 0
    if (missing !== 0 || !page.continued) open = null

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
}

/** The packets that end on a page, the first of them perhaps a rest, and the beginning of one more. */
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
