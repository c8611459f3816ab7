import type { Chunk } from '#inference/transport.ts'
import { type AppError, toAppError } from '#lib/errors.ts'
import { invalidResponse, type ResponseHead } from './http1-head.ts'

/** Removes the framing of a body (RFC 9112, 6 and 7). */
export type BodyReader = {
  /**
   * The payload in the bytes from `from`, as one range; null if there is none. May rearrange the bytes
   * in place: they belong to the reader.
   */
  push(bytes: Buffer, from: number): Chunk | null
  readonly complete: boolean
  /** Whether the next byte begins a chunk, so that `wholeChunk` may read it. */
  readonly isAtChunk: boolean
  /** Whether a clean end of the connection ends the body. */
  readonly endsWithConnection: boolean
  /** Whether bytes after the end of this body arrived. */
  readonly surplus: boolean
  /** Set when the body is invalid; nothing may be pushed afterwards. */
  readonly failure: AppError | null
}

/** The reader for the framing in the head. Throws when the head is contradictory. */
export function createBodyReader(
  head: ResponseHead,
  limits: { headerBytesMax: number },
): BodyReader {
  if (head.status === 204 || head.status === 304) return new PlainBody(0)
  const encoding = head.headers.get('transfer-encoding')
  const length = head.headers.get('content-length')
  if (encoding === undefined) {
    return length === undefined ? new PlainBody(null) : new PlainBody(parseLength(length))
  }
  if (length !== undefined) throw invalidResponse('a chunked body has a length')
  if (head.minorVersion === 0) throw invalidResponse('an HTTP/1.0 body is chunked')
  if (encoding.toLowerCase() !== 'chunked')
    throw invalidResponse('the transfer encoding is unknown')
  return new ChunkedBody(limits.headerBytesMax)
}

/** Digits only. A repeated length is valid if all values are equal. */
function parseLength(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  const [first = '', ...others] = text.split(/[ \t]*,[ \t]*/)
  if (!/^\d{1,15}$/.test(first) || others.some((other) => other !== first)) {
    throw invalidResponse('the length of the body is malformed')
  }
  return Number(first)
}

/** A body without framing: it ends after `length` bytes, or with the connection. */
class PlainBody implements BodyReader {
  readonly failure = null
  readonly isAtChunk = false
  readonly endsWithConnection: boolean
  complete: boolean
  surplus = false
  #remaining: number

  constructor(length: number | null) {
    this.endsWithConnection = length === null
    this.complete = length === 0
    this.#remaining = length ?? Number.POSITIVE_INFINITY
  }

  push(bytes: Buffer, from: number): Chunk | null {
    const to = Math.min(bytes.length, from + this.#remaining)
    this.#remaining -= to - from
    this.complete = this.#remaining === 0
    this.surplus = to < bytes.length
    return to > from ? { bytes, start: from, end: to } : null
  }
}

/** The role of the next byte of a chunked body. Numbers, since it is compared for every byte. */
const expects = {
  size: 0,
  spaceAfterSize: 1,
  extension: 2,
  lfAfterSize: 3,
  data: 4,
  crAfterData: 5,
  lfAfterData: 6,
  startOfTrailerLine: 7,
  trailerLine: 8,
  lfAfterTrailerLine: 9,
  lfAtEnd: 10,
} as const

/** 13 hexadecimal digits are below 2^53, so sizes are exact. */
const sizeDigitsMax = 13
/** Per chunk. Extensions are ignored. */
const extensionBytesMax = 1_024

const tab = 0x09
const lf = 0x0a
const cr = 0x0d
const space = 0x20
const semicolon = 0x3b

/**
 * All state is in one flat object: with hundreds of slow streams it is cold in cache at every read,
 * and each further object would cost as much as the parsing.
 */
class ChunkedBody implements BodyReader {
  readonly endsWithConnection = false
  complete = false
  surplus = false
  failure: AppError | null = null
  #expects: number = expects.size
  /** Remaining bytes of the chunk. */
  #remaining = 0
  #sizeDigits = 0
  #extensionBytes = 0
  #trailerBytes = 0
  readonly #trailerBytesMax: number

  constructor(trailerBytesMax: number) {
    this.#trailerBytesMax = trailerBytesMax
  }

  get isAtChunk(): boolean {
    return this.#expects === expects.size && this.#sizeDigits === 0
  }

  /** Moves the pieces of one read together in place, so that they form one chunk. */
  push(bytes: Buffer, from: number): Chunk | null {
    let at = from
    let start = -1
    let end = -1
    try {
      while (at < bytes.length && !this.complete) {
        if (this.#expects !== expects.data) {
          this.#readFramingByte(bytes[at] ?? 0)
          at += 1
          continue
        }
        const to = Math.min(bytes.length, at + this.#remaining)
        this.#remaining -= to - at
        if (this.#remaining === 0) this.#expects = expects.crAfterData
        if (start === -1) {
          start = at
          end = to
        } else {
          bytes.copyWithin(end, at, to)
          end += to - at
        }
        at = to
      }
    } catch (error) {
      // Earlier bytes are still returned, so that the result does not depend on how reads were split.
      this.failure = toAppError(error)
    }
    this.surplus = at < bytes.length
    return start === -1 ? null : { bytes, start, end }
  }

  #readFramingByte(byte: number) {
    switch (this.#expects) {
      case expects.size:
        this.#readSizeByte(byte)
        return
      case expects.lfAfterSize:
        expectByte(byte, lf)
        this.#expects = this.#remaining === 0 ? expects.startOfTrailerLine : expects.data
        return
      case expects.crAfterData:
        expectByte(byte, cr)
        this.#expects = expects.lfAfterData
        return
      case expects.lfAfterData:
        expectByte(byte, lf)
        this.#expects = expects.size
        this.#sizeDigits = 0
        this.#extensionBytes = 0
        return
      case expects.spaceAfterSize:
      case expects.extension:
        this.#readExtensionByte(byte)
        return
      default:
        this.#readTrailerByte(byte)
    }
  }

  #readSizeByte(byte: number) {
    const digit = hexValue(byte)
    if (digit === -1) {
      if (this.#sizeDigits === 0) throw invalidResponse('a chunk has no size')
      this.#endSize(byte)
      return
    }
    this.#sizeDigits += 1
    if (this.#sizeDigits > sizeDigitsMax) throw invalidResponse('the size of a chunk is too large')
    this.#remaining = this.#remaining * 16 + digit
  }

  #endSize(byte: number) {
    if (byte === cr) this.#expects = expects.lfAfterSize
    else if (byte === semicolon) this.#expects = expects.extension
    else if (byte === space || byte === tab) this.#expects = expects.spaceAfterSize
    else throw invalidResponse('the size of a chunk is malformed')
  }

  #readExtensionByte(byte: number) {
    this.#extensionBytes += 1
    if (this.#extensionBytes > extensionBytesMax) {
      throw invalidResponse('a chunk extension is too long')
    }
    if (this.#expects === expects.spaceAfterSize) this.#endSize(byte)
    else if (byte === cr) this.#expects = expects.lfAfterSize
    else if (byte === lf || byte === 0) throw invalidResponse('a chunk extension is malformed')
  }

  #readTrailerByte(byte: number) {
    this.#trailerBytes += 1
    if (this.#trailerBytes > this.#trailerBytesMax) throw invalidResponse('the trailer is too long')
    if (this.#expects === expects.lfAtEnd) {
      expectByte(byte, lf)
      this.complete = true
    } else if (this.#expects === expects.lfAfterTrailerLine) {
      expectByte(byte, lf)
      this.#expects = expects.startOfTrailerLine
    } else if (byte === cr) {
      const atStart = this.#expects === expects.startOfTrailerLine
      this.#expects = atStart ? expects.lfAtEnd : expects.lfAfterTrailerLine
    } else if (byte === lf || byte === 0) {
      throw invalidResponse('the trailer is malformed')
    } else {
      this.#expects = expects.trailerLine
    }
  }
}

const shortSizeDigitsMax = 4

/**
 * The payload of bytes that are exactly one chunk, not the last one, without extensions; otherwise null. Most
 * reads of a slow stream are, and then its reader is not needed, which is cold in cache.
 */
export function wholeChunk(bytes: Buffer): Chunk | null {
  let size = 0
  let digits = 0
  for (; digits < shortSizeDigitsMax; digits++) {
    const digit = hexValue(bytes[digits] ?? 0)
    if (digit === -1) break
    size = size * 16 + digit
  }
  const start = digits + crlfBytes
  const end = start + size
  const isWhole = size > 0 && end + crlfBytes === bytes.length
  return isWhole && isCrlf(bytes, digits) && isCrlf(bytes, end) ? { bytes, start, end } : null
}

const crlfBytes = 2

function isCrlf(bytes: Buffer, at: number): boolean {
  return bytes[at] === cr && bytes[at + 1] === lf
}

function expectByte(byte: number, expected: number) {
  if (byte !== expected) throw invalidResponse('the framing of a chunk is malformed')
}

/** The value of a hexadecimal digit, or -1. */
function hexValue(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}
