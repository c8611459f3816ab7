import type { Quantiles } from './histogram.ts'
import type { Faults } from './stream-check.ts'

/** Job of the long-prompt client, sent as JSON on its standard input. */
export type PromptJob = {
  readonly port: number
  readonly bearer: string
  readonly model: string
  /** Approximate size of each request body. */
  readonly promptBytes: number
  /** Interval of requests, regardless of responses. */
  readonly everyMs: number
  /** Time after which no request starts. */
  readonly lastsMs: number
}

export type PromptReport = {
  /** Time from the first byte of the request to the last byte of the response. */
  readonly responseMs: Quantiles
  readonly faults: Faults
}
