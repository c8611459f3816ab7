/** Builds EBML elements. */
export const ids = {
  ebml: 0x1a45dfa3,
  docType: 0x4282,
  segment: 0x18538067,
  seekHead: 0x114d9b74,
  info: 0x1549a966,
  tracks: 0x1654ae6b,
  trackEntry: 0xae,
  trackNumber: 0xd7,
  trackType: 0x83,
  codecId: 0x86,
  codecPrivate: 0x63a2,
  codecDelay: 0x56aa,
  contentEncodings: 0x6d80,
  audio: 0xe1,
  cluster: 0x1f43b675,
  timecode: 0xe7,
  simpleBlock: 0xa3,
  blockGroup: 0xa0,
  block: 0xa1,
  discardPadding: 0x75a2,
  void: 0xec,
  cues: 0x1c53bb6b,
} as const

type Size = 'known' | 'unknown' | 8

/** One element; its size may be unknown or written in eight bytes. */
export function element(
  id: number,
  content: Uint8Array | readonly Uint8Array[],
  size: Size = 'known',
): Uint8Array {
  const body = content instanceof Uint8Array ? content : Buffer.concat([...content])
  return new Uint8Array(Buffer.concat([idBytes(id), sizeBytes(body.length, size), body]))
}

export function numberElement(id: number, value: number): Uint8Array {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(BigInt(value))
  return element(id, bytes)
}

function textElement(id: number, text: string): Uint8Array {
  return element(id, new TextEncoder().encode(text))
}

export function trackEntry(fields: {
  readonly number: number
  readonly type: number
  readonly codec: string
  readonly codecPrivate?: Uint8Array
  readonly codecDelayNs?: number
  readonly more?: readonly Uint8Array[]
}): Uint8Array {
  return element(ids.trackEntry, [
    numberElement(ids.trackNumber, fields.number),
    numberElement(ids.trackType, fields.type),
    textElement(ids.codecId, fields.codec),
    ...(fields.codecPrivate ? [element(ids.codecPrivate, fields.codecPrivate)] : []),
    ...(fields.codecDelayNs === undefined
      ? []
      : [numberElement(ids.codecDelay, fields.codecDelayNs)]),
    ...(fields.more ?? []),
  ])
}

function blockContent(track: number, packet: Uint8Array, flags = 0x80, time = 0): Uint8Array {
  const head = Uint8Array.of(0x80 | track, time >> 8, time, flags)
  return new Uint8Array(Buffer.concat([head, packet]))
}

/** `time`: relative to the cluster. */
export function simpleBlock(
  track: number,
  packet: Uint8Array,
  flags?: number,
  time?: number,
): Uint8Array {
  return element(ids.simpleBlock, blockContent(track, packet, flags, time))
}

/** A block with several packets. */
export function lacedBlock(
  track: number,
  packets: readonly Uint8Array[],
  lacing: 'xiph' | 'ebml' | 'fixed',
): Uint8Array {
  const flags = { xiph: 0x82, fixed: 0x84, ebml: 0x86 }[lacing]
  const sizes = packets.slice(0, -1).map(({ length }) => length)
  const header = {
    xiph: () => sizes.flatMap((size) => [...Array(Math.floor(size / 255)).fill(255), size % 255]),
    fixed: () => [],
    // Two bytes each: the first size, then differences from -8191.
    ebml: () =>
      sizes.flatMap((size, at) => {
        const before = sizes[at - 1]
        const value = before === undefined ? size : size - before + 8_191
        return [0x40 | (value >> 8), value & 0xff]
      }),
  }[lacing]()
  const content = Buffer.concat([Uint8Array.of(packets.length - 1, ...header), ...packets])
  return simpleBlock(track, new Uint8Array(content), flags)
}

export function blockGroup(track: number, packet: Uint8Array, discardNs = 0): Uint8Array {
  return element(ids.blockGroup, [
    element(ids.block, blockContent(track, packet, 0)),
    ...(discardNs === 0 ? [] : [numberElement(ids.discardPadding, discardNs)]),
  ])
}

export function webmStart(tracks: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(
    Buffer.concat([
      element(ids.ebml, textElement(ids.docType, 'webm')),
      element(ids.segment, [], 'unknown'),
      element(ids.info, textElement(0x4d80, 'a muxer')),
      element(ids.tracks, tracks),
    ]),
  )
}

export function cluster(
  blocks: readonly Uint8Array[],
  size: Size = 'unknown',
  timecode = 0,
): Uint8Array {
  return element(ids.cluster, [numberElement(ids.timecode, timecode), ...blocks], size)
}

function idBytes(id: number): Uint8Array {
  const hex = id.toString(16)
  return Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex')
}

function sizeBytes(length: number, size: Size): Uint8Array {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(length))
  bytes[0] = 1
  if (size === 'unknown') bytes.fill(0xff, 1)
  if (size !== 'known' || length >= 2 ** 14 - 1) return bytes
  return length < 127
    ? Uint8Array.of(0x80 | length)
    : Uint8Array.of(0x40 | (length >> 8), length & 0xff)
}
