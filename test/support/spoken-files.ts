import { wavFile } from '#test/speech/decoders/wav-builder.ts'
import { type SpokenWord, speak } from './spoken-numbers.ts'

/** A file of spoken numbers, with its words. */
export type SpokenFile = { readonly file: File; readonly words: readonly SpokenWord[] }

/** A WAV file of utterances with these numbers of words, each after half a second of silence. */
export function spokenFile(utterances: readonly number[], silenceMs = 500): SpokenFile {
  const { samples, words } = speak(
    utterances.map((count) => ({ silenceMs, words: count })),
    silenceMs,
  )
  const bytes = wavFile(new Uint8Array(samples.buffer))
  return { file: new File([bytes.slice()], 'numbers.wav', { type: 'audio/wav' }), words }
}

/** The words as the text of one utterance. */
export function textOf(words: readonly SpokenWord[]): string {
  return words.map(({ word }) => word).join(' ')
}
