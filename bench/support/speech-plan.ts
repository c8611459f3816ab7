import { sampleRateHz, speakTones, wordMs, wordsMax } from './spoken-tones.ts'

/** All sessions repeat the same utterances from different starting points. */
export const frameMs = 20
export const wordsPerUtterance = 15
const silenceMs = 500
export const utteranceMs = silenceMs + wordsPerUtterance * wordMs
export const framesPerUtterance = utteranceMs / frameMs
const frameSamples = (sampleRateHz * frameMs) / 1000
const utteranceSamples = frameSamples * framesPerUtterance

/** Utterances of silence and words that count up from 0. */
export type Speech = { readonly samples: Int16Array; readonly utterances: number }

/** Audio of whole utterances; longer sessions repeat it. */
export function makeSpeech(seconds: number): Speech {
  const utterances = Math.min(
    Math.ceil((seconds * 1000) / utteranceMs),
    Math.floor(wordsMax / wordsPerUtterance),
  )
  const samples = new Int16Array(utterances * utteranceSamples)
  for (let word = 0; word < utterances * wordsPerUtterance; word++) {
    const silencesMs = (Math.floor(word / wordsPerUtterance) + 1) * silenceMs
    speakTones(samples, ((silencesMs + word * wordMs) * sampleRateHz) / 1000, word)
  }
  return { samples, utterances }
}

/** The frames of a session that begins at this starting point, as 16-bit PCM. */
export function framesOf(
  { samples, utterances }: Speech,
  start: number,
): (frame: number) => Uint8Array {
  const frames = utterances * framesPerUtterance
  const first = firstUtterance(utterances, start) * framesPerUtterance
  return (frame) => {
    const at = ((first + frame) % frames) * frameSamples
    return new Uint8Array(samples.buffer, at * 2, frameSamples * 2)
  }
}

/** Adjacent starting points are far apart, so that mixed-up sessions are detected. */
function firstUtterance(utterances: number, start: number): number {
  return (start * 7) % utterances
}

export type SpeechFaults = {
  /** Words sent and not recognised. */
  lost: number
  /** Repeated words, or words of another session. */
  wrong: number
  /** Sessions that ended incorrectly. */
  failed: number
  /** Descriptions of the first faults. */
  readonly samples: string[]
}

const samplesMax = 5

export function noSpeechFaults(): SpeechFaults {
  return { lost: 0, wrong: 0, failed: 0, samples: [] }
}

export function noteSpeechFault(faults: SpeechFaults, sentence: string): void {
  if (faults.samples.length < samplesMax) faults.samples.push(sentence)
}

/** Checks the finals of one session: every word once, in order. */
export class SpeechCheck {
  readonly #words: number
  readonly #first: number
  readonly #session: number
  readonly #faults: SpeechFaults
  heard = 0

  constructor(
    { utterances }: Speech,
    { session, start, faults }: { session: number; start: number; faults: SpeechFaults },
  ) {
    this.#words = utterances * wordsPerUtterance
    this.#first = firstUtterance(utterances, start) * wordsPerUtterance
    this.#session = session
    this.#faults = faults
  }

  /** Completely recognised utterances. */
  utterances(): number {
    return Math.floor(this.heard / wordsPerUtterance)
  }

  final(text: string): void {
    for (const word of text.split(' ')) {
      const ahead = (Number(word) - this.#first - this.heard) % this.#words
      const skipped = ahead < 0 ? ahead + this.#words : ahead
      if (skipped === 0) this.heard += 1
      else this.#note(word, skipped)
    }
  }

  /** Total frames sent; the session has ended. */
  end(frames: number): void {
    const missing = Math.floor(frames / framesPerUtterance) * wordsPerUtterance - this.heard
    if (missing <= 0) return
    this.#faults.lost += missing
    noteSpeechFault(this.#faults, `session ${this.#session}: the last ${missing} words are missing`)
  }

  /** A word slightly ahead means a gap before it; anything else is out of place. */
  #note(word: string, skipped: number): void {
    const isHole = skipped < this.#words / 2
    if (isHole) {
      this.#faults.lost += skipped
      this.heard += skipped + 1
    } else this.#faults.wrong += 1
    const what = isHole ? `${skipped} words missing before` : 'out of place is'
    noteSpeechFault(this.#faults, `session ${this.#session}: ${what} word "${word}"`)
  }
}
