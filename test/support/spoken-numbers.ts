/**
 * Speech that proves what became of it: each word is a number, said for 100 ms by the level of its
 * samples; between words may be silence.
 */
export const sampleRateHz = 16_000
const wordMs = 100
const wordSamples = (sampleRateHz * wordMs) / 1000
const levelOfZero = 2_000

export type SpokenWord = { readonly word: string; readonly startMs: number; readonly endMs: number }

export type Speech = { readonly samples: Int16Array; readonly words: readonly SpokenWord[] }

/** Utterances of so many words, each with so much silence before it, and some at the end. */
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

/** Understands such speech; a word that was not heard in whole is not understood. */
export type Listener = {
  /** Words that these samples complete. */
  hear(samples: Int16Array): SpokenWord[]
  heardMs(): number
  /** For how long nothing has been said. */
  silenceMs(): number
}

export function createListener(): Listener {
  let level = 0
  let since = 0
  let heard = 0
  const toMs = (samples: number) => (samples * 1000) / sampleRateHz

  return {
    hear(samples) {
      const words: SpokenWord[] = []
      for (const sample of samples) {
        if (Math.abs(sample) !== level) {
          level = Math.abs(sample)
          since = heard
        }
        heard += 1
        if (level === 0 || heard - since !== wordSamples) continue
        const word = String(level - levelOfZero)
        words.push({ word, startMs: toMs(since), endMs: toMs(heard) })
      }
      return words
    },
    heardMs: () => toMs(heard),
    silenceMs: () => (level === 0 ? toMs(heard - since) : 0),
  }
}
