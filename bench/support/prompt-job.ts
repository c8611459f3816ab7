import type { Quantiles } from './histogram.ts'
import type { Faults } from './stream-check.ts'

/** What the client with the long prompts shall do; it gets this as JSON on its standard input. */
export type PromptJob = {
  readonly port: number
  readonly bearer: string
  readonly model: string
  /** The whole body of each request, about. */
  readonly promptBytes: number
  /** One request begins so often, whether the last one was answered or not. */
  readonly everyMs: number
  /** After this time no more begin. */
  readonly lastsMs: number
}

export type PromptReport = {
  /** From the first byte of the request to the last of its answer. */
  readonly answerMs: Quantiles
  readonly faults: Faults
}
