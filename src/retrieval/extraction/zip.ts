import { inflateRawSync } from 'node:zlib'
import { UnreadableFile } from './unreadable.ts'

/** A ZIP archive; entries are inflated on access. */
export type ZipFile = {
  readonly names: readonly string[]
  has(name: string): boolean
  /** Throws `UnreadableFile`, also for content above the declared size. */
  read(name: string): Uint8Array
}

const entriesMax = 2_000
/** Declared size of all entries. */
const contentBytesMax = 200 * 1024 * 1024
/** Compression ratio of large entries; only decompression bombs exceed it. */
const ratioMax = 100
const ratioFromBytes = 1024 * 1024

const endSignature = 0x06054b50
const endBytes = 22
const commentBytesMax = 65_535
const entrySignature = 0x02014b50
const entryBytes = 46
const localSignature = 0x04034b50
const localBytes = 30
const encryptedFlag = 1
const stored = 0
const deflated = 8

type Entry = {
  readonly name: string
  readonly flags: number
  readonly method: number
  readonly packedBytes: number
  readonly bytes: number
  /** Offset of its local header. */
  readonly start: number
}

/**
 * Reads the directory of an archive. Refuses decompression bombs: too many entries, too much content,
 * extreme ratios, or overlapping entries.
 */
export function openZip(archive: Uint8Array): ZipFile {
  const view = new DataView(archive.buffer, archive.byteOffset, archive.byteLength)
  const entries = readDirectory(archive, view)
  const contentBytes = entries.reduce((sum, { bytes }) => sum + bytes, 0)
  if (contentBytes > contentBytesMax) throw new UnreadableFile('too_large')
  if (entries.some(isBomb)) throw new UnreadableFile('too_large')
  requireNoOverlap(entries)
  const byName = new Map(entries.map((entry) => [entry.name, entry]))
  if (byName.size < entries.length) throw new UnreadableFile('invalid_file')
  return {
    names: [...byName.keys()],
    has: (name) => byName.has(name),
    read(name) {
      const entry = byName.get(name)
      if (entry === undefined) throw new UnreadableFile('invalid_file')
      return inflate(packedBytesOf(archive, view, entry), entry)
    },
  }
}

function readDirectory(archive: Uint8Array, view: DataView): Entry[] {
  const end = findEnd(view)
  const count = view.getUint16(end + 10, true)
  if (count > entriesMax) throw new UnreadableFile('too_large')
  const names = new TextDecoder()
  const entries: Entry[] = []
  let at = view.getUint32(end + 16, true)
  for (let index = 0; index < count; index++) {
    if (at + entryBytes > end || view.getUint32(at, true) !== entrySignature) {
      throw new UnreadableFile('invalid_file')
    }
    const nameEnd = at + entryBytes + view.getUint16(at + 28, true)
    entries.push({
      name: names.decode(archive.subarray(at + entryBytes, nameEnd)),
      flags: view.getUint16(at + 8, true),
      method: view.getUint16(at + 10, true),
      packedBytes: view.getUint32(at + 20, true),
      bytes: view.getUint32(at + 24, true),
      start: view.getUint32(at + 42, true),
    })
    at = nameEnd + view.getUint16(at + 30, true) + view.getUint16(at + 32, true)
  }
  // A wrong entry count would hide files that other programs unpack.
  if (at !== end) throw new UnreadableFile('invalid_file')
  return entries
}

/** The end record precedes an optional comment. ZIP64 archives fail later, by their sizes. */
function findEnd(view: DataView): number {
  const last = view.byteLength - endBytes
  for (let at = last; at >= Math.max(0, last - commentBytesMax); at--) {
    if (view.getUint32(at, true) !== endSignature) continue
    if (at + endBytes + view.getUint16(at + 20, true) === view.byteLength) return at
  }
  throw new UnreadableFile('invalid_file')
}

function isBomb({ bytes, packedBytes }: Entry): boolean {
  return bytes > ratioFromBytes && bytes > packedBytes * ratioMax
}

/** Overlapping entries multiply the content without a high ratio. */
function requireNoOverlap(entries: readonly Entry[]): void {
  let nextFree = 0
  for (const { start, packedBytes } of entries.toSorted((a, b) => a.start - b.start)) {
    if (start < nextFree) throw new UnreadableFile('too_large')
    nextFree = start + localBytes + packedBytes
  }
}

function packedBytesOf(archive: Uint8Array, view: DataView, entry: Entry): Uint8Array {
  const { start, packedBytes, flags } = entry
  if ((flags & encryptedFlag) !== 0) throw new UnreadableFile('encrypted')
  if (start + localBytes > archive.length || view.getUint32(start, true) !== localSignature) {
    throw new UnreadableFile('invalid_file')
  }
  const variableBytes = view.getUint16(start + 26, true) + view.getUint16(start + 28, true)
  const begin = start + localBytes + variableBytes
  if (begin + packedBytes > archive.length) throw new UnreadableFile('invalid_file')
  return archive.subarray(begin, begin + packedBytes)
}

function inflate(packed: Uint8Array, { bytes, method }: Entry): Uint8Array {
  if (method !== stored && method !== deflated) throw new UnreadableFile('invalid_file')
  if (bytes === 0) return new Uint8Array(0)
  const content = method === stored ? packed : inflateUpTo(packed, bytes)
  if (content.length !== bytes) throw new UnreadableFile('invalid_file')
  return content
}

function inflateUpTo(packed: Uint8Array, bytesMax: number): Uint8Array {
  try {
    return inflateRawSync(packed, { maxOutputLength: bytesMax })
  } catch (error) {
    const isTooLarge = error instanceof RangeError
    throw new UnreadableFile(isTooLarge ? 'too_large' : 'invalid_file', error)
  }
}
