import type { Language } from '#speech/engine.ts'
import type { SpeechModel } from './model-files.ts'

/** Messages between the gateway and the process of a speech model. One request at a time. */
export type ToChild =
  | {
      readonly type: 'load'
      readonly runtime: string
      readonly model: SpeechModel
      readonly threads: number
    }
  | { readonly type: 'recognise'; readonly samples: Int16Array; readonly language: Language }

export type FromChild =
  | { readonly type: 'loaded' }
  | { readonly type: 'load-failed'; readonly detail: string }
  | ({ readonly type: 'recognised' } & ChildResult)
  | { readonly type: 'failed'; readonly detail: string }

/** A token that starts a word starts with a space. Times are seconds; empty if there are none. */
export type ChildResult = {
  readonly text: string
  readonly tokens: readonly string[]
  readonly starts: readonly number[]
  readonly durations: readonly number[]
}

/** The rate of the samples. */
export const localRateHz = 16_000
