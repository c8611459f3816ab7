import type { JsonObject } from '#lib/json.ts'

/**
 * What a gateway and the process of a model say to one another. Each exchange has a number; the child
 * ends each exactly once, with `ended`, whether it was told to stop or not.
 */
export type ToChild =
  | ({ readonly type: 'load' } & LoadOptions)
  | { readonly type: 'generate'; readonly exchange: number; readonly prompt: Prompt }
  | { readonly type: 'count'; readonly exchange: number; readonly prompt: Prompt }
  /** So many pieces were taken, and as many more may come. */
  | { readonly type: 'taken'; readonly exchange: number; readonly pieces: number }
  | { readonly type: 'stop'; readonly exchange: number }

export type FromChild =
  | { readonly type: 'loaded'; readonly contextTokens: number }
  /** It is of no use. `detail` is for the log. */
  | { readonly type: 'unloadable'; readonly reason: LoadFault; readonly detail: string }
  /** The prompt is legal, and the model begins to read it. */
  | { readonly type: 'begun'; readonly exchange: number }
  | { readonly type: 'piece'; readonly exchange: number; readonly piece: Piece }
  | { readonly type: 'ended'; readonly exchange: number; readonly ending: Ending }

/** `package`: what would load a model does not work itself. */
export type LoadFault = 'package' | 'memory' | 'model'

export type LoadOptions = {
  /** The file of the package that is imported. */
  readonly packageEntry: string
  readonly modelPath: string
  readonly gpu: boolean
  readonly threads: number
  readonly contextTokensMax: number
  readonly sequences: number
}

/** What came before, and how the model is to go on, in the words of the package. */
export type Prompt = {
  /** Ends with an item of the model, where it goes on. */
  readonly history: readonly ChatItem[]
  /** By name; null: there are none. */
  readonly functions: Readonly<Record<string, ChatFunction>> | null
  /** Whether the answer is to be a call. */
  readonly mustCall: boolean
  readonly callsMax: number
  readonly form: AnswerForm
  /** The answer ends before the first of them. */
  readonly stopTexts: readonly string[]
  readonly sampling: PromptSampling
}

export type AnswerForm =
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
  /** Undefined: until the context is full. */
  readonly maxTokens?: number
  /** Of these, for thoughts. */
  readonly thoughtTokens?: number
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
  /** Undefined: it takes none. */
  readonly params?: JsonObject
}

export type Piece =
  | { readonly type: 'text' | 'thought' | 'comment'; readonly text: string }
  /** Of the arguments of a call, which are numbered from 0 and come one after the other. */
  | { readonly type: 'call'; readonly call: number; readonly name: string; readonly text: string }

export type Ending =
  | {
      readonly type: 'finished'
      readonly reason: 'stop' | 'stop-sequence' | 'length' | 'tool-calls'
      readonly stopText?: string
      readonly tokens: TokenCounts
    }
  | { readonly type: 'counted'; readonly tokens: number }
  /** `overflow`: the prompt is longer than the context. */
  | { readonly type: 'refused'; readonly reason: 'overflow' | 'prompt'; readonly message: string }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'stopped' }

export type TokenCounts = {
  readonly input: number
  /** Of the input, what the model had read before. */
  readonly cached: number
  readonly output: number
  readonly thoughts: number
}

/** So many pieces may be on their way to a gateway that has not taken them. */
export const piecesAheadMax = 32
