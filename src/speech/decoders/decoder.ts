/** The encodings of the interface. */
export const encodings = ['pcm_int16', 'pcm_float32', 'wav', 'mp3', 'opus'] as const

export type Encoding = (typeof encodings)[number]

/** What Opus comes in: found out from the first bytes, or raw packets, one a message, if declared. */
export const containers = ['auto', 'ogg', 'webm', 'raw'] as const

export type Container = (typeof containers)[number]

export type AudioFormat = {
  readonly encoding: Encoding
  readonly container: Container
  /** Of the PCM encodings, which do not say it themselves; null for the others. */
  readonly sampleRateHz: number | null
  readonly channels: 1 | 2
}

/**
 * Bytes of one encoding → mono samples of 16 bit at one rate. However the bytes are cut, the
 * samples are the same; of raw Opus packets each call gets exactly one.
 *
 * Decoding is lazy: the caller takes pieces of at most `pieceMsMax` as it has room for them, so
 * that a few bytes that unfold to minutes of sound never stand in memory as samples. A call's
 * pieces are taken to the end before the next call. `decode` and `end` throw an `AudioError`.
 */
export type AudioDecoder = {
  decode(bytes: Uint8Array): Iterable<Int16Array>
  /** No more bytes come: what is still inside. */
  end(): Iterable<Int16Array>
  /** What was put right on the way; it grows. */
  readonly faults: AudioFaults
  /** What the stream turned out to be; null until it is known. */
  readonly sourceRateHz: number | null
  /** Frees native memory; harmless when called twice. */
  close(): void
}

/** The most audio in one piece. */
export const pieceMsMax = 200

/** Counted, never fatal by themselves; too many `corrupt` frames are (`bad_audio`). */
export type AudioFaults = {
  clippedSamples: number
  /** NaN and infinities, taken as silence. */
  invalidSamples: number
  /** Frames, pages or packets that could not be decoded. */
  corruptFrames: number
  /** Numbers that were skipped in a container's own sequence. */
  gaps: number
}

export type AudioErrorCode =
  /** The bytes are of another encoding, which `details` names where it is known. */
  | 'wrong_encoding'
  /** A container that is not taken, such as MP4. */
  | 'unsupported_container'
  /** An encoding inside the container that is not taken, such as A-law in WAV. */
  | 'unsupported_audio'
  /** Too much of it cannot be decoded. */
  | 'bad_audio'

/** What is wrong with a caller's audio; `message` is public. */
export class AudioError extends Error {
  override readonly name = 'AudioError'
  readonly code: AudioErrorCode
  readonly details: Readonly<Record<string, unknown>>

  constructor(code: AudioErrorCode, message: string, details: Record<string, unknown> = {}) {
    super(message)
    this.code = code
    this.details = details
  }
}
