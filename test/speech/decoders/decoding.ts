import {
  AudioError,
  type AudioFaults,
  type AudioFormat,
  type AudioGap,
  pieceMsMax,
} from '#speech/decoders/decoder.ts'
import { openAudioDecoder } from '#speech/decoders/open-decoder.ts'
import { createDice } from '#test/support/dice.ts'
import type { SpeechForm } from '#test/support/speech-material.ts'

export type Decoded = {
  readonly samples: Int16Array
  readonly faults: AudioFaults
  /** Each with the sample before which it is. */
  readonly gaps: readonly (AudioGap & { readonly at: number })[]
}

type DeclaredFormat = Pick<AudioFormat, 'encoding'> & Partial<AudioFormat>

/** Decodes chunks and checks the size of every piece. */
export async function decodeAll(
  format: DeclaredFormat,
  bytes: Uint8Array | readonly Uint8Array[],
  engineRateHz = 16_000,
): Promise<Decoded> {
  const pieces: Int16Array[] = []
  const gaps: (AudioGap & { readonly at: number })[] = []
  const decoder = await openAudioDecoder(
    { container: 'auto', sampleRateHz: null, channels: 1, ...format },
    engineRateHz,
    (gap) => gaps.push({ ...gap, at: pieces.reduce((sum, { length }) => sum + length, 0) }),
  )
  try {
    for (const part of bytes instanceof Uint8Array ? [bytes] : bytes) {
      for (const piece of decoder.decode(part)) pieces.push(piece)
    }
    for (const piece of decoder.end()) pieces.push(piece)
  } finally {
    decoder.close()
  }
  const pieceSamplesMax = (engineRateHz * pieceMsMax) / 1000
  if (pieces.some(({ length }) => length === 0 || length > pieceSamplesMax)) {
    throw new Error('a piece is empty or too long')
  }
  return {
    samples: joinSamples(pieces),
    faults: { ...decoder.faults },
    gaps,
  }
}

/** The `AudioError` of decoding; other errors are rethrown. */
export async function decodingError(
  format: DeclaredFormat,
  bytes: Uint8Array | readonly Uint8Array[],
): Promise<AudioError> {
  try {
    await decodeAll(format, bytes)
  } catch (error) {
    if (error instanceof AudioError) return error
    throw error
  }
  throw new Error('it was decoded')
}

/** The declared formats of the test material. */
export function formatOf(form: SpeechForm): DeclaredFormat {
  switch (form) {
    case 'ogg':
    case 'webm':
      return { encoding: 'opus' }
    case 'pcm_int16':
    case 'pcm_float32':
      return { encoding: form, sampleRateHz: 16_000 }
    default:
      return { encoding: form }
  }
}

export function cutEvery(bytes: Uint8Array, count: number): Uint8Array[] {
  return Array.from({ length: Math.ceil(bytes.length / count) }, (_, index) =>
    bytes.subarray(index * count, (index + 1) * count),
  )
}

export function cutByDice(bytes: Uint8Array, seed: number, countMax: number): Uint8Array[] {
  const dice = createDice(seed)
  const parts: Uint8Array[] = []
  for (let from = 0; from < bytes.length; ) {
    const to = from + dice.upTo(countMax)
    parts.push(bytes.subarray(from, to))
    from = to
  }
  return parts
}

export function bytesByDice(seed: number, count: number): Uint8Array {
  const dice = createDice(seed)
  return Uint8Array.from({ length: count }, () => dice.upTo(256))
}

export function joinBytes(...parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts))
}

export function joinSamples(parts: readonly Int16Array[]): Int16Array {
  const joined = new Int16Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}

/** 16-bit PCM bytes as samples. */
export function int16Samples(bytes: Uint8Array): Int16Array {
  return new Int16Array(bytes.slice().buffer)
}

export function int16Bytes(samples: ArrayLike<number>): Uint8Array {
  return new Uint8Array(Int16Array.from(samples).buffer)
}

/** A tone with amplitude 0.5. */
export function tone(hz: number, rateHz: number, count: number): Float32Array {
  return Float32Array.from(
    { length: count },
    (_, at) => Math.sin((2 * Math.PI * hz * at) / rateHz) / 2,
  )
}

/** The signal-to-difference ratio over the samples that both have. */
export function snrDb(reference: ArrayLike<number>, samples: ArrayLike<number>): number {
  let signal = 0
  let noise = 0
  for (let at = 0; at < Math.min(reference.length, samples.length); at++) {
    const wanted = reference[at] ?? 0
    signal += wanted ** 2
    noise += (wanted - (samples[at] ?? 0)) ** 2
  }
  return 10 * Math.log10(signal / noise)
}
