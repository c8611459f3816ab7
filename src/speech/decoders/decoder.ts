/** The audio encodings of the API. */
export const encodings = ['pcm_int16', 'pcm_float32', 'wav', 'mp3', 'opus'] as const

export type Encoding = (typeof encodings)[number]

/** Opus containers: detected from the first bytes, or raw packets (one per message) if declared. */
export const containers = ['auto', 'ogg', 'webm', 'raw'] as const

export type Container = (typeof containers)[number]

export type AudioFormat = {
  readonly encoding: Encoding
  readonly container: Container
  /** Null for encodings other than PCM, which state their rate themselves. */
  readonly sampleRateHz: number | null
  readonly channels: 1 | 2
}

/**
 * Decodes bytes of one encoding to mono 16-bit samples at one rate. The samples do not depend on how
 * the bytes are chunked; raw Opus packets are passed one per call.
 *
 * Decoding is lazy: the caller pulls pieces of at most `pieceMsMax`, so that a few bytes that decode
 * to minutes of audio are never held as samples. All pieces of a call are pulled before the next
 * call. `decode` and `end` throw an `AudioError`.
 */
export type AudioDecoder = Required<FormatDecoder> & {
  /** Counters of repaired faults. */
  readonly faults: AudioFaults
}

/** Decodes one encoding to the pieces of a `SampleOutput`, which is ended after it. */
export type FormatDecoder = {
  decode(bytes: Uint8Array): Iterable<Int16Array>
  /** The remaining samples after the last bytes. */
  end?(): Iterable<Int16Array>
  /** Frees native memory; idempotent. */
  close?(): void
}

/** Audio in one piece. */
export const pieceMsMax = 200

/** Audio that is missing in its container. The next pieces are silence of `filledMs` in its place. */
export type AudioGap = { readonly missingMs: number; readonly filledMs: number }

export type AudioErrorCode =
  /** The bytes have another encoding, named in `details` if known. */
  | 'wrong_encoding'
  /** An unsupported container, such as MP4. */
  | 'unsupported_container'
  /** An unsupported codec or format inside the container. */
  | 'unsupported_audio'
  /** Too much of it cannot be decoded. */
  | 'bad_audio'

/** The client's audio is invalid or unsupported. `message` is public. */
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

/** With more corrupt frames the audio does not have the declared encoding. */
const corruptFramesMax = 100

/** Consecutive undecodable bytes that count as one corrupt frame. */
const garbageBytesPerFault = 4096

export type AudioFaults = ReturnType<typeof createFaults>

/** Faults are counted and not fatal, except for too many corrupt frames (`bad_audio`). */
export function createFaults() {
  return {
    clippedSamples: 0,
    /** NaN and infinities, replaced by silence. */
    invalidSamples: 0,
    /** Frames, pages or packets that could not be decoded. */
    corruptFrames: 0,
    /** Missing sequence numbers of a container, and jumps of its timestamps. */
    gaps: 0,
  }
}

export function countCorrupt(faults: AudioFaults) {
  faults.corruptFrames += 1
  if (faults.corruptFrames <= corruptFramesMax) return
  throw new AudioError(
    'bad_audio',
    `More than ${corruptFramesMax} frames of the audio could not be decoded.`,
    { corrupt_frames: faults.corruptFrames },
  )
}

/** Counts bytes skipped while searching for valid data as corrupt frames. */
export function createGarbageCounter(faults: AudioFaults) {
  let run = 0
  return {
    skipped(bytes: number): void {
      const before = Math.ceil(run / garbageBytesPerFault)
      run += bytes
      for (let at = before; at < Math.ceil(run / garbageBytesPerFault); at++) countCorrupt(faults)
    },
    /** A candidate turned out to be invalid; checking many of them is slow. */
    mistaken(): void {
      // The first one is counted by its skipped bytes.
      if (run > 0) countCorrupt(faults)
    },
    found(): void {
      run = 0
    },
  }
}
