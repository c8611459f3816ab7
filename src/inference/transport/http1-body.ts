import type { Chunk } from '#inference/transport.ts'
import { type AppError, toAppError } from '#lib/errors.ts'
import { invalidAnswer, type ResponseHead } from './http1-head.ts'

/** Takes the framing off a body (RFC 9112, 6 and 7). */
export type BodyReader = {
  /**
   * The payload in the bytes from `from` on, as one part of them, or null when there is none. It
   * may rearrange the bytes in place, so they must belong to the reader.
   */
  push(bytes: Buffer, from: number): Chunk | null
  readonly complete: boolean
  /** Whether the end of the connection is a proper end of the body. */
  readonly endsWithConnection: boolean
  /** Whether bytes came that do not belong to this body. */
  readonly surplus: boolean
  /** What is wrong with the body; nothing may be pushed after that. */
  readonly failure: AppError | null
}

/** The reader that the head asks for. Throws when the head contradicts itself. */
export function createBodyReader(
  head: ResponseHead,
  limits: { headerBytesMax: number },
): BodyReader {
  if (head.status === 204 || head.status === 304) return new SizedBody(0)
  const encoding = head.headers.get('transfer-encoding')
  const length = head.headers.get('content-length')
  if (encoding === undefined) {
    return length === undefined ? new UnsizedBody() : new SizedBody(parseLength(length))
  }
  if (length !== undefined) throw invalidAnswer('a chunked body has a length')
  if (head.minorVersion === 0) throw invalidAnswer('an HTTP/1.0 body is chunked')
  if (encoding.toLowerCase() !== 'chunked') throw invalidAnswer('the transfer encoding is unknown')
  return new ChunkedBody(limits.headerBytesMax)
}

/** Digits alone; a repeated length counts as one when it is the same everywhere. */
function parseLength(text: string): number {
  const [first = '', ...others] = text.split(/[ \t]*,[ \t]*/)
  if (!/^\d{1,15}$/.test(first) || others.some((other) => other !== first)) {
    throw invalidAnswer('the length of the body is malformed')
  }
  return Number(first)
}

class SizedBody implements BodyReader {
  readonly failure = null
  readonly endsWithConnection = false
  complete: boolean
  surplus = false
  #remaining: number

  constructor(length: number) {
    this.complete = length === 0
    this.#remaining = length
  }

  push(bytes: Buffer, from: number): Chunk | null {
    const to = Math.min(bytes.length, from + this.#remaining)
    this.#remaining -= to - from
    this.complete = this.#remaining === 0
    this.surplus = to < bytes.length
    return to > from ? { bytes, start: from, end: to } : null
  }
}

class UnsizedBody implements BodyReader {
  readonly failure = null
  readonly endsWithConnection = true
  readonly complete = false
  readonly surplus = false

  push(bytes: Buffer, from: number): Chunk | null {
    return bytes.length > from ? { bytes, start: from, end: bytes.length } : null
  }
}

/** What the next byte of a chunked body belongs to. Numbers, for this is looked at byte by byte. */
const expects = {
  size: 0,
  blankAfterSize: 1,
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

/** 13 hexadecimal digits stay below 2^53, so that a size is always exact. */
const sizeDigitsMax = 13
/** Of one chunk. Extensions have no use; nobody sends long ones. */
const extensionBytesMax = 1_024

const tab = 0x09
const lf = 0x0a
const cr = 0x0d
const blank = 0x20
const semicolon = 0x3b

/**
 * All state lies flat in one object: with hundreds of slow streams it is out of the processor's
 * cache at every read, and each further object costs as much as the parsing.
 */
class ChunkedBody implements BodyReader {
  readonly endsWithConnection = false
  complete = false
  surplus = false
  failure: AppError | null = null
  #expects: number = expects.size
  /** Bytes of the chunk that are still to come. */
  #remaining = 0
  #sizeDigits = 0
  #extensionBytes = 0
  #trailerBytes = 0
  readonly #trailerBytesMax: number

  constructor(trailerBytesMax: number) {
    this.#trailerBytesMax = trailerBytesMax
  }

  /** The pieces of one read are moved together, so that they leave as one chunk without a copy. */
  push(bytes: Buffer, from: number): Chunk | null {
    let at = from
    let start = -1
    let end = -1
    try {
      while (at < bytes.length && !this.complete) {
        if (this.#expects !== expects.data) {
          this.#takeFramingByte(bytes[at] ?? 0)
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
      // What came before is still given, so that it does not matter how the reads were cut.
      this.failure = toAppError(error)
    }
    this.surplus = at < bytes.length
    return start === -1 ? null : { bytes, start, end }
  }

  #takeFramingByte(byte: number) {
    switch (this.#expects) {
      case expects.size:
        this.#takeSizeByte(byte)
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
      case expects.blankAfterSize:
      case expects.extension:
        this.#takeExtensionByte(byte)
        return
      default:
        this.#takeTrailerByte(byte)
    }
  }

  #takeSizeByte(byte: number) {
    const digit = hexValue(byte)
    if (digit === -1) {
      if (this.#sizeDigits === 0) throw invalidAnswer('a chunk has no size')
      this.#endSize(byte)
      return
    }
    this.#sizeDigits += 1
    if (this.#sizeDigits > sizeDigitsMax) throw invalidAnswer('the size of a chunk is too large')
    this.#remaining = this.#remaining * 16 + digit
  }

  #endSize(byte: number) {
    if (byte === cr) this.#expects = expects.lfAfterSize
    else if (byte === semicolon) this.#expects = expects.extension
    else if (byte === blank || byte === tab) this.#expects = expects.blankAfterSize
    else throw invalidAnswer('the size of a chunk is malformed')
  }

  #takeExtensionByte(byte: number) {
    this.#extensionBytes += 1
    if (this.#extensionBytes > extensionBytesMax) {
      throw invalidAnswer('a chunk extension is too long')
    }
    if (this.#expects === expects.blankAfterSize) this.#endSize(byte)
    else if (byte === cr) this.#expects = expects.lfAfterSize
    else if (byte === lf || byte === 0) throw invalidAnswer('a chunk extension is malformed')
  }

  #takeTrailerByte(byte: number) {
    this.#trailerBytes += 1
    if (this.#trailerBytes > this.#trailerBytesMax) throw invalidAnswer('the trailer is too long')
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
      throw invalidAnswer('the trailer is malformed')
    } else {
      this.#expects = expects.trailerLine
    }
  }
}

function expectByte(byte: number, wanted: number) {
  if (byte !== wanted) throw invalidAnswer('the framing of a chunk is malformed')
}

/** The value of a hexadecimal digit, or -1. */
function hexValue(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}
