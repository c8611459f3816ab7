import type { Manifest } from './manifest.ts'

/** The messages between the gateway and the process of one model. */

export type LoadOptions = {
  /** The entry point of the runtime's package. */
  readonly packageEntry: string
  readonly modelPath: string
  readonly tokenizerPath: string
  /** Absent in some models. */
  readonly tokenizerConfigPath?: string
  readonly manifest: Manifest
  readonly threads: number
}

/** One run of the model, which cannot be cancelled: a few texts, so that a query soon gets its turn. */
export type Run =
  | { readonly kind: 'embed'; readonly texts: readonly string[] }
  | {
      readonly kind: 'score'
      readonly query: string
      readonly documents: readonly string[]
      /** Tokens of each document. */
      readonly documentTokensMax: number
    }

export type RunResult =
  | {
      readonly kind: 'embedded'
      /** The vectors one after the other. */
      readonly vectors: Float32Array
      readonly dims: number
      readonly tokens: number
    }
  | { readonly kind: 'scored'; readonly scores: readonly number[]; readonly tokens: number }

export type ToChild =
  | ({ readonly type: 'load' } & LoadOptions)
  | { readonly type: 'run'; readonly run: Run }

/** A process runs one after the other, so results need no id. */
export type FromChild =
  | { readonly type: 'loaded'; readonly tokensMax: number }
  | {
      readonly type: 'load-failed'
      readonly reason: 'package' | 'model'
      readonly detail: string
    }
  | { readonly type: 'ended'; readonly result: RunResult }
  | { readonly type: 'failed'; readonly detail: string }
