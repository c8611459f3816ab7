import type { ByteReader } from './byte-reader.ts'

/** The header of an EBML element (RFC 8794). */
export type ElementHead = {
  readonly id: number
  /** Null if unknown. */
  readonly size: number | null
  readonly headBytes: number
}

/** An element with its content. */
export type Element = { readonly id: number; readonly content: Uint8Array }

/** The next header; 'invalid' if there cannot be one, null when more bytes are needed. */
export function peekElementHead(reader: ByteReader): ElementHead | 'invalid' | null {
  const idBytes = lengthOf(reader.peek(1)?.[0])
  if (idBytes === null || idBytes > 4) return idBytes === null ? null : 'invalid'
  const sizeBytes = lengthOf(reader.peek(idBytes + 1)?.[idBytes])
  if (sizeBytes === null || sizeBytes > 8) return sizeBytes === null ? null : 'invalid'
  const head = reader.peek(idBytes + sizeBytes)
  return head === null ? null : readHead(head, idBytes, sizeBytes)
}

/** The elements in `content`, up to the first that is incomplete. */
export function* childElements(content: Uint8Array): Generator<Element> {
  let at = 0
  while (at < content.length) {
    const idBytes = lengthOf(content[at]) ?? 9
    const sizeBytes = lengthOf(content[at + idBytes]) ?? 9
    if (idBytes > 4 || sizeBytes > 8 || at + idBytes + sizeBytes > content.length) return
    const { id, size } = readHead(content.subarray(at), idBytes, sizeBytes)
    at += idBytes + sizeBytes
    if (size === null || at + size > content.length) return
    yield { id, content: content.subarray(at, at + size) }
    at += size
  }
}

/** A variable-length integer; null if incomplete. */
export function readVint(bytes: Uint8Array): { value: number; bytes: number } | null {
  const length = lengthOf(bytes[0]) ?? 9
  if (length > 8 || length > bytes.length) return null
  return { value: readNumber(bytes.subarray(0, length)), bytes: length }
}

export function readUnsigned(bytes: Uint8Array): number {
  return bytes.reduce((value, byte) => value * 256 + byte, 0)
}

export function readText(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes.subarray(0, 64)).replace(/\0.*$/s, '')
}

function readHead(bytes: Uint8Array, idBytes: number, sizeBytes: number): ElementHead {
  const size = readNumber(bytes.subarray(idBytes, idBytes + sizeBytes))
  return {
    id: readUnsigned(bytes.subarray(0, idBytes)),
    // All bits set: unknown size.
    size: size >= 2 ** (7 * sizeBytes) - 1 ? null : size,
    headBytes: idBytes + sizeBytes,
  }
}

/** Without the length marker; inexact above 2^53, which no valid stream reaches. */
function readNumber(bytes: Uint8Array): number {
  const mark = 0x80 >> (bytes.length - 1)
  return bytes.reduce((value, byte, at) => value * 256 + (at === 0 ? byte - mark : byte), 0)
}

/** The length of an integer by its first byte: 1 to 8, 9 if invalid; null without a byte. */
function lengthOf(first: number | undefined): number | null {
  return first === undefined ? null : Math.clz32(first) - 23
}
