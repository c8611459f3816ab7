import type { CpuUse } from './cpu-use.ts'
import type { Quantiles } from './histogram.ts'
import type { Protocol } from './mock-frames.ts'
import type { Plan } from './plan.ts'
import type { Faults } from './stream-check.ts'

/** A token so much behind its schedule is counted as late: a person would see it. */
export const lateMs = 250

/** Whom a load client asks, and how. */
export type LoadRequest = {
  readonly port: number
  readonly protocol: Protocol
  /** Where requests go; without it where the protocol has them, as at the mock upstream. */
  readonly path?: string
  /** Further headers of each request. */
  readonly headers?: Readonly<Record<string, string>>
  readonly bearer: string | null
  readonly stream: boolean
  /** Whether the gateway keeps the responses. */
  readonly store: boolean
}

/** What the load client shall do; it gets this as JSON on its standard input. */
export type LoadJob = LoadRequest & {
  readonly connections: number
  /**
   * `repeat` asks again on each connection until the window ends; `once` asks one time. `leave` asks
   * one time, lets the window begin `windowStartMs` after every stream has had its first token, and
   * goes away when it ends: for streams of which a machine may be behind.
   */
  readonly mode: 'repeat' | 'once' | 'leave'
  /** The connections start spread evenly over so long. */
  readonly rampMs: number
  /** Figures are taken inside the window; all that comes is checked, inside it or not. */
  readonly windowStartMs: number
  readonly windowMs: number
  /** Each connection uses the seed of the plan plus its own number. */
  readonly plans: readonly Plan[]
  /** Whatever has not ended by then has failed. */
  readonly deadlineMs: number
  /** The root of the process tree whose CPU time is taken at both ends of the window. */
  readonly measurePid: number | null
  /** An answer with this status is a refusal that was to be expected; without it none is. */
  readonly refusalStatus?: number
  /** How often a `LoadProgress` goes to standard error; without it never. */
  readonly progressMs?: number
}

export type LoadProgress = {
  readonly progress: {
    readonly elapsedMs: number
    readonly streamsOpen: number
    readonly inWindow: boolean
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
  /** Answers with the status that was to be expected of a refusal. */
  readonly refused: number
  /** How many streams gave a token, and when the last of them gave its first. */
  readonly begun: { readonly streams: number; readonly lastAfterMs: number }
  readonly faults: Faults
  readonly window: {
    readonly ms: number
    readonly requests: number
    readonly tokens: number
    readonly cpuMs: number | null
    /** The same by what its threads do; null where nothing is measured. */
    readonly cpu: CpuUse | null
  }
  /** From the request to the first token, or to the whole answer where it is not streamed. */
  readonly firstTokenMs: Quantiles
  /** From the request to the end of its answer, of the answers that ended in the window. */
  readonly wholeMs: Quantiles
  /** Behind the schedule of the upstream. */
  readonly latenessMs: Quantiles
  /** Between two tokens of one stream. */
  readonly gapMs: Quantiles
  /** How much longer than planned the time between two tokens of one stream was. */
  readonly gapBeyondMs: Quantiles
}
