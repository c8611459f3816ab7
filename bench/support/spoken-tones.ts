/**
 * Synthetic speech whose words are verifiable after lossy compression: each word is a number from 0 to
 * 9,999, and its four decimal digits sound at the same time, each as one of ten tones of its own band.
 */
export const sampleRateHz = 16_000
export const wordMs = 100
export const wordsMax = 10_000
const soundMs = 60
const rampMs = 5
const digits = 4
const tonesPerBand = 10
const lowestHz = 400
const spacingHz = 50
const amplitude = 4_000
/** Loudness is measured in blocks of this length. */
const blockMs = 5
/** Mean absolute sample values at which a sound starts and ends. */
const soundLevel = 1_500
const quietLevel = 800
/** The part in the middle of a sound that is analysed; its length separates neighbouring tones. */
const analysedMs = 40
/** Shorter and longer sounds have lost or repeated audio. */
const soundMsMin = 45
const soundMsMax = 85
/** The power of a tone, relative to every other tone of its band. */
const dominance = 4

const inSamples = (ms: number) => (ms * sampleRateHz) / 1000
const blockSamples = inSamples(blockMs)
const analysedSamples = inSamples(analysedMs)

/** Where a word begins, by its end: audio decoded from a lossy format has no exact edges. */
export type ToneWord = { readonly word: number; readonly startMs: number; readonly endMs: number }

/** Adds a word to silent samples. */
export function speakTones(samples: Int16Array, at: number, word: number): void {
  const steps = tonesOf(word).map((hz) => (2 * Math.PI * hz) / sampleRateHz)
  const soundSamples = inSamples(soundMs)
  const rampSamples = inSamples(rampMs)
  for (let index = 0; index < soundSamples; index++) {
    const edge = Math.min(index, soundSamples - 1 - index)
    const gain = edge >= rampSamples ? 1 : 0.5 - 0.5 * Math.cos((Math.PI * edge) / rampSamples)
    let sum = 0
    for (const step of steps) sum += Math.sin(step * index)
    samples[at + index] = Math.round(sum * amplitude * gain)
  }
}

function tonesOf(word: number): number[] {
  return Array.from({ length: digits }, (_, band) => {
    const digit = Math.floor(word / tonesPerBand ** band) % tonesPerBand
    return toneHz(band, digit)
  })
}

function toneHz(band: number, digit: number): number {
  return lowestHz + (band * tonesPerBand + digit) * spacingHz
}

/** Recognises such speech; a word with missing audio is not recognised. */
export class ToneRecogniser {
  /** The last samples, as a ring. */
  readonly #recent = new Int16Array(inSamples(soundMsMax) + 2 * blockSamples)
  #processed = 0
  #blockSum = 0
  #isSound = false
  #edge = 0

  /** Returns the words that these samples complete. */
  process(samples: Int16Array): ToneWord[] {
    const words: ToneWord[] = []
    for (const sample of samples) {
      this.#recent[this.#processed % this.#recent.length] = sample
      this.#processed += 1
      this.#blockSum += Math.abs(sample)
      if (this.#processed % blockSamples !== 0) continue
      const word = this.#endBlock(this.#blockSum / blockSamples)
      this.#blockSum = 0
      if (word !== undefined) words.push(word)
    }
    return words
  }

  /** The duration of the current silence. */
  silenceMs(): number {
    return this.#isSound ? 0 : toMs(this.#processed - this.#edge)
  }

  #endBlock(level: number): ToneWord | undefined {
    const isSound = level > (this.#isSound ? quietLevel : soundLevel)
    if (isSound === this.#isSound) return undefined
    const start = this.#edge
    this.#isSound = isSound
    this.#edge = this.#processed - blockSamples
    if (isSound) return undefined
    const lengthMs = toMs(this.#edge - start)
    if (lengthMs < soundMsMin || lengthMs > soundMsMax) return undefined
    const middle = start + Math.round((this.#edge - start - analysedSamples) / 2)
    const word = this.#wordAt(middle)
    return word === undefined
      ? undefined
      : { word, startMs: toMs(start), endMs: toMs(start) + wordMs }
  }

  #wordAt(start: number): number | undefined {
    let word = 0
    for (let band = digits - 1; band >= 0; band--) {
      const powers = Array.from({ length: tonesPerBand }, (_, digit) =>
        this.#power(start, toneHz(band, digit)),
      )
      const most = Math.max(...powers)
      if (powers.filter((power) => power * dominance > most).length !== 1) return undefined
      word = word * tonesPerBand + powers.indexOf(most)
    }
    return word
  }

  /** Goertzel's algorithm. */
  #power(start: number, hz: number): number {
    const factor = 2 * Math.cos((2 * Math.PI * hz) / sampleRateHz)
    const recent = this.#recent
    let at = start % recent.length
    let one = 0
    let two = 0
    for (let index = 0; index < analysedSamples; index++) {
      const next = (recent[at] ?? 0) + factor * one - two
      two = one
      one = next
      at = at + 1 === recent.length ? 0 : at + 1
    }
    return one * one + two * two - factor * one * two
  }
}

function toMs(samples: number): number {
  return (samples * 1000) / sampleRateHz
}
