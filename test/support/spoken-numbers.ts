/**
 * Synthetic speech whose words are verifiable: each word is a number, encoded for 100 ms as the level of
 * the samples, with optional silence in between.
 */
export const sampleRateHz = 16_000
const wordMs = 100
const wordSamples = (sampleRateHz * wordMs) / 1000
const levelOfZero = 2_000

export type SpokenWord = { readonly word: string; readonly startMs: number; readonly endMs: number }

export type Speech = { readonly samples: Int16Array; readonly words: readonly SpokenWord[] }

/** Generates utterances with their number of words and the silence before each. */
export function speak(
  utterances: readonly { readonly silenceMs: number; readonly words: number }[],
  endSilenceMs = 0,
): Speech {
  const wordsTotal = utterances.reduce((sum, { words }) => sum + words, 0)
  const silenceMs = utterances.reduce((sum, utterance) => sum + utterance.silenceMs, endSilenceMs)
  const samples = new Int16Array(wordsTotal * wordSamples + (silenceMs * sampleRateHz) / 1000)
  const words: SpokenWord[] = []
  let at = 0
  for (const utterance of utterances) {
    at += (utterance.silenceMs * sampleRateHz) / 1000
    for (let count = 0; count < utterance.words; count += 1) {
      const number = words.length + 1
      const startMs = (at * 1000) / sampleRateHz
      words.push({ word: String(number), startMs, endMs: startMs + wordMs })
      for (let index = 0; index < wordSamples; index += 1) {
        samples[at + index] = (levelOfZero + number) * (index % 2 === 0 ? 1 : -1)
      }
      at += wordSamples
    }
  }
  return { samples, words }
}

/** Recognises such speech; incomplete words are not recognised. */
export type NumberRecogniser = {
  /** Returns the words that these samples complete. */
  process(samples: Int16Array): SpokenWord[]
  processedMs(): number
  /** The duration of the current silence. */
  silenceMs(): number
}

export function createNumberRecogniser(): NumberRecogniser {
  let level = 0
  let since = 0
  let processed = 0
  const toMs = (samples: number) => (samples * 1000) / sampleRateHz

  return {
    process(samples) {
      const words: SpokenWord[] = []
      for (const sample of samples) {
        if (Math.abs(sample) !== level) {
          level = Math.abs(sample)
          since = processed
        }
        processed += 1
        if (level === 0 || processed - since !== wordSamples) continue
        const word = String(level - levelOfZero)
        words.push({ word, startMs: toMs(since), endMs: toMs(processed) })
      }
      return words
    },
    processedMs: () => toMs(processed),
    silenceMs: () => (level === 0 ? toMs(processed - since) : 0),
  }
}
