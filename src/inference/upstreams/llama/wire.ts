import type { JsonObject } from '#lib/json.ts'

/**
 * The messages between the gateway and a model process. The child ends each call exactly once, with
 * `ended`, whether the call was stopped or not.
 */
export type ToChild =
  | ({ readonly type: 'load' } & LoadOptions)
  | { readonly type: 'generate'; readonly callId: number; readonly prompt: Prompt }
  | { readonly type: 'count'; readonly callId: number; readonly prompt: Prompt }
  /** This many pieces were consumed, so the child may send as many more. */
  | { readonly type: 'acknowledge'; readonly callId: number; readonly pieces: number }
  | { readonly type: 'stop'; readonly callId: number }

export type FromChild =
  | { readonly type: 'loaded'; readonly contextTokens: number }
  /** The model cannot be loaded. `detail` is for the log. */
  | { readonly type: 'load-failed'; readonly reason: LoadFault; readonly detail: string }
  /** The prompt is valid, and the model begins to process it. */
  | { readonly type: 'begun'; readonly callId: number }
  | { readonly type: 'piece'; readonly callId: number; readonly piece: Piece }
  | { readonly type: 'ended'; readonly callId: number; readonly ending: Ending }

/** `package`: the llama.cpp package itself does not work. */
export type LoadFault = 'package' | 'memory' | 'model'

export type LoadOptions = {
  /** The entry point of the package. */
  readonly packageEntry: string
  readonly modelPath: string
  readonly gpu: boolean
  readonly threads: number
  readonly contextTokensMax: number
  readonly sequences: number
}

/** The conversation and the generation parameters, in the terms of the package. */
export type Prompt = {
  /** Ends with the model's item that the generation continues. */
  readonly history: readonly ChatItem[]
  /** By name; null where there are none. */
  readonly functions: Readonly<Record<string, ChatFunction>> | null
  /** Whether the model has to call a function. */
  readonly mustCall: boolean
  readonly callsMax: number
  readonly format: OutputConstraint
  /** The output ends before the first occurrence of any of them. */
  readonly stopSequences: readonly string[]
  readonly sampling: PromptSampling
}

export type OutputConstraint =
  | { readonly type: 'text' }
  | { readonly type: 'json-object' }
  | { readonly type: 'json-schema'; readonly schema: JsonObject }

export type PromptSampling = {
  readonly temperature: number
  readonly topP?: number
  readonly topK?: number
  readonly presencePenalty?: number
  readonly frequencyPenalty?: number
  readonly seed: number
  /** Undefined: limited by the context alone. */
  readonly maxTokens?: number
  /** The most of these for thinking. */
  readonly thinkingTokens?: number
}

export type ChatItem =
  | { type: 'system' | 'user'; text: string }
  | { type: 'model'; response: ModelPart[] }

export type ModelPart =
  | string
  | { type: 'segment'; segmentType: 'thought'; text: string; ended: boolean }
  | { type: 'functionCall'; name: string; params: unknown; result: unknown }

export type ChatFunction = {
  readonly description?: string
  /** Undefined where it takes none. */
  readonly params?: JsonObject
}

export type Piece =
  | { readonly type: 'text' | 'thought' | 'comment'; readonly text: string }
  /** A piece of the arguments of a call; calls are numbered from 0 and are sequential. */
  | { readonly type: 'call'; readonly call: number; readonly name: string; readonly text: string }

export type Ending =
  | {
      readonly type: 'finished'
      readonly reason: 'stop' | 'stop-sequence' | 'length' | 'tool-calls'
      readonly stopSequence?: string
      readonly tokens: TokenCounts
    }
  | { readonly type: 'counted'; readonly tokens: number }
  /** `overflow`: the prompt exceeds the context. */
  | { readonly type: 'refused'; readonly reason: 'overflow' | 'prompt'; readonly message: string }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'stopped' }

export type TokenCounts = {
  readonly input: number
  /** Input tokens that the sequence had already processed. */
  readonly cached: number
  readonly output: number
  readonly thinking: number
}

/** The most pieces that the child sends before the gateway acknowledges them. */
export const unacknowledgedPiecesMax = 32
