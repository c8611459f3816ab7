import { wavFile } from '#test/speech/decoders/wav-builder.ts'
import { type SpokenWord, speak } from './spoken-numbers.ts'

/** A file that says numbers, and what it says. */
export type SpokenFile = { readonly file: File; readonly words: readonly SpokenWord[] }

/** A WAV file of utterances of so many words, each after half a second of silence. */
export function spokenFile(utterances: readonly number[], silenceMs = 500): SpokenFile {
  const { samples, words } = speak(
    utterances.map((count) => ({ silenceMs, words: count })),
    silenceMs,
  )
  const bytes = wavFile(new Uint8Array(samples.buffer))
  return { file: new File([bytes.slice()], 'numbers.wav', { type: 'audio/wav' }), words }
}

/** Words as one utterance of an engine. */
export function said(words: readonly SpokenWord[]): string {
  return words.map(({ word }) => word).join(' ')
}
