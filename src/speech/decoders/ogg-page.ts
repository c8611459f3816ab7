import { createByteReader } from './byte-reader.ts'
import { dropUntil } from './byte-search.ts'
import type { AudioFaults } from './decoder.ts'
import { createGarbageCount } from './faults.ts'

/** A page of an Ogg stream (RFC 3533, 6) whose checksum was right. */
export type OggPage = {
  /** It begins with the rest of a packet. */
  readonly continued: boolean
  /** It begins, or ends, its logical stream. */
  readonly first: boolean
  readonly last: boolean
  /** The time at its end in samples; null where no packet ends on it. */
  readonly granule: number | null
  readonly serial: number
  readonly sequence: number
  /** The lengths of its segments. */
  readonly lacing: Uint8Array
  /** The segments; like `lacing` valid until the next page is asked for. */
  readonly body: Uint8Array
}

const capture = [0x4f, 0x67, 0x67, 0x53]
const headBytes = 27

/** Bytes → pages. What is broken is passed over up to the next page, and counted. */
export function createOggPages(faults: AudioFaults): (bytes: Uint8Array) => Iterable<OggPage> {
  const reader = createByteReader()
  const garbage = createGarbageCount(faults)

  /** The length of a page that stands here, 0 if none does; null when more bytes are needed. */
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
      if (page !== null && checksum(page) === storedChecksum(page)) {
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

function readPage(page: Uint8Array): OggPage {
  const view = new DataView(page.buffer, page.byteOffset, page.byteLength)
  const flags = view.getUint8(5)
  const granule = Number(view.getBigInt64(6, true))
  const bodyAt = headBytes + view.getUint8(26)
  return {
    continued: (flags & 1) !== 0,
    first: (flags & 2) !== 0,
    last: (flags & 4) !== 0,
    granule: granule >= 0 && Number.isSafeInteger(granule) ? granule : null,
    serial: view.getUint32(14, true),
    sequence: view.getUint32(18, true),
    lacing: page.subarray(headBytes, bodyAt),
    body: page.subarray(bodyAt),
  }
}

const checksumAt = 22

function storedChecksum(page: Uint8Array): number {
  return new DataView(page.buffer, page.byteOffset + checksumAt, 4).getUint32(0, true)
}

/** CRC-32 with the polynomial 04c11db7, unreflected, over the page with its checksum as zeros. */
function checksum(page: Uint8Array): number {
  let crc = 0
  for (let at = 0; at < page.length; at++) {
    const byte = at >= checksumAt && at < checksumAt + 4 ? 0 : (page[at] as number)
    crc = (crc << 8) ^ (crcTable[((crc >>> 24) ^ byte) & 0xff] as number)
  }
  return crc >>> 0
}

const crcTable = Int32Array.from({ length: 256 }, (_, index) => {
  let crc = index << 24
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x80000000 ? (crc << 1) ^ 0x04c11db7 : crc << 1
  return crc
})
