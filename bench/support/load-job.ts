import type { Quantiles } from './histogram.ts'
import type { Protocol } from './mock-frames.ts'
import type { Plan } from './plan.ts'
import type { Faults } from './stream-check.ts'

/** What the load client shall do; it gets this as JSON on its standard input. */
export type LoadJob = {
  readonly port: number
  readonly protocol: Protocol
  readonly bearer: string | null
  readonly stream: boolean
  /** Whether the gateway keeps the responses. */
  readonly store: boolean
  readonly connections: number
  /** `repeat` asks again on each connection until the window ends; `once` asks one time. */
  readonly mode: 'repeat' | 'once'
  /** The connections start spread evenly over so long. */
  readonly rampMs: number
  /** Figures are taken inside the window; all that comes is checked, inside it or not. */
  readonly windowStartMs: number
  readonly windowMs: number
  /** Each connection uses the seed of the plan plus its own number. */
  readonly plans: readonly Plan[]
  readonly promptBytes: number
  /** A token so much behind its schedule is counted as late. */
  readonly lateMs: number
  /** Whatever has not ended by then has failed. */
  readonly deadlineMs: number
  /** The root of the process tree whose CPU time is taken at both ends of the window. */
  readonly measurePid: number | null
  /** How often a `LoadProgress` goes to standard error; 0 is never. */
  readonly progressMs: number
}

export type LoadProgress = {
  readonly progress: {
    readonly elapsedMs: number
    readonly streamsOpen: number
    readonly tokens: number
    readonly heartbeats: number
    readonly faults: Faults
  }
}

/** What came of it: one JSON on standard output. */
export type LoadReport = {
  readonly elapsedMs: number
  readonly requests: number
  readonly events: number
  readonly tokens: number
  readonly heartbeats: number
  readonly lateTokens: number
  readonly faults: Faults
  readonly window: {
    readonly ms: number
    readonly requests: number
    readonly tokens: number
    readonly cpuMs: number | null
  }
  /** From the request to the first token, or to the whole answer where it is not streamed. */
  readonly firstTokenMs: Quantiles
  /** Behind the schedule of the upstream. */
  readonly latenessMs: Quantiles
  /** Between two tokens of one stream. */
  readonly gapMs: Quantiles
}
