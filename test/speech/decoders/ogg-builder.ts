/** Parses and builds Ogg pages, so that tests can corrupt them precisely. */
export type Page = {
  /** 1 continued, 2 first, 4 last. */
  readonly flags: number
  readonly granule: bigint
  readonly serial: number
  readonly sequence: number
  readonly lacing: readonly number[]
  readonly body: Uint8Array
}

const continued = 1
const first = 2
const last = 4

export function readPages(file: Uint8Array): Page[] {
  const pages: Page[] = []
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength)
  for (let at = 0; at < file.length; ) {
    const lacing = [...file.subarray(at + 27, at + 27 + view.getUint8(at + 26))]
    const bodyAt = at + 27 + lacing.length
    const bodyBytes = lacing.reduce((sum, length) => sum + length, 0)
    pages.push({
      flags: view.getUint8(at + 5),
      granule: view.getBigInt64(at + 6, true),
      serial: view.getUint32(at + 14, true),
      sequence: view.getUint32(at + 18, true),
      lacing,
      body: file.subarray(bodyAt, bodyAt + bodyBytes),
    })
    at = bodyAt + bodyBytes
  }
  return pages
}

/** The packets of a file with one stream: head, tags and audio. */
export function readPackets(file: Uint8Array): Uint8Array[] {
  const packets: Uint8Array[] = []
  let open: Uint8Array[] = []
  for (const { lacing, body } of readPages(file)) {
    let at = 0
    for (const length of lacing) {
      open.push(body.subarray(at, at + length))
      at += length
      if (length === 255) continue
      packets.push(new Uint8Array(Buffer.concat(open)))
      open = []
    }
  }
  return packets
}

export function writePages(pages: readonly Page[]): Uint8Array {
  return new Uint8Array(Buffer.concat(pages.map(pageBytes)))
}

function pageBytes(page: Page): Uint8Array {
  const head = Buffer.alloc(27)
  head.write('OggS', 0, 'latin1')
  head.writeUInt8(page.flags, 5)
  head.writeBigInt64LE(page.granule, 6)
  head.writeUInt32LE(page.serial, 14)
  head.writeUInt32LE(page.sequence, 18)
  head.writeUInt8(page.lacing.length, 26)
  const bytes = Buffer.concat([head, Uint8Array.from(page.lacing), page.body])
  bytes.writeUInt32LE(checksum(bytes), 22)
  return bytes
}

/** Bitwise, as the standard defines it. */
function checksum(bytes: Uint8Array): number {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte << 24
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x80000000 ? 0x04c11db7 : 0) ^ (crc << 1)
  }
  return crc >>> 0
}

export type Stream = {
  readonly serial: number
  readonly head: Uint8Array
  readonly tags?: Uint8Array
  readonly packets: readonly Uint8Array[]
  readonly granuleEnd?: bigint
  /** Segments per page; a packet may continue on the next. */
  readonly segmentsMax?: number
}

/** Builds a logical stream from packets of 20 ms. */
export function writeStream(stream: Stream): Uint8Array {
  const { serial, head, packets, segmentsMax = 255 } = stream
  const tags = stream.tags ?? new Uint8Array(Buffer.from('OpusTags\0\0\0\0\0\0\0\0'))
  const segments = packets.flatMap((packet, index) =>
    segmentsOf(packet).map((part) => ({ part, index })),
  )
  const pages = [...pagesOf([head], serial, 0), ...pagesOf([tags], serial, 1)].map((page, at) => ({
    ...page,
    flags: at === 0 ? first : page.flags,
  }))
  let sequence = pages.length
  for (let at = 0; at < segments.length; at += segmentsMax) {
    const own = segments.slice(at, at + segmentsMax)
    const isLast = at + segmentsMax >= segments.length
    const startsInside = segments[at - 1]?.part.length === 255
    const ended = own.findLast(({ part }) => part.length < 255)
    const granule = ended === undefined ? -1n : BigInt((ended.index + 1) * 960)
    pages.push({
      flags: (startsInside ? continued : 0) | (isLast ? last : 0),
      granule: isLast ? (stream.granuleEnd ?? granule) : granule,
      serial,
      sequence,
      lacing: own.map(({ part }) => part.length),
      body: new Uint8Array(Buffer.concat(own.map(({ part }) => part))),
    })
    sequence += 1
  }
  return writePages(pages)
}

/** Builds the pages of one packet. */
function pagesOf(packets: readonly Uint8Array[], serial: number, sequence: number): Page[] {
  const segments = packets.flatMap(segmentsOf)
  return Array.from({ length: Math.ceil(segments.length / 255) }, (_, index) => {
    const own = segments.slice(index * 255, (index + 1) * 255)
    return {
      flags: index === 0 ? 0 : continued,
      granule: 0n,
      serial,
      sequence: sequence + index,
      lacing: own.map(({ length }) => length),
      body: new Uint8Array(Buffer.concat(own)),
    }
  })
}

function segmentsOf(packet: Uint8Array): Uint8Array[] {
  return Array.from({ length: Math.floor(packet.length / 255) + 1 }, (_, index) =>
    packet.subarray(index * 255, (index + 1) * 255),
  )
}
