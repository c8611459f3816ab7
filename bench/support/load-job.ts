import type { CpuUse } from './cpu-use.ts'
import type { Quantiles } from './histogram.ts'
import type { Protocol } from './mock-frames.ts'
import type { Plan } from './plan.ts'
import type { Faults } from './stream-check.ts'

/** Lateness from which a token counts as late: noticeable to a person. */
export const lateMs = 250

/** Target of a load client, and its requests. */
export type LoadRequest = {
  readonly port: number
  readonly protocol: Protocol
  /** Path of requests; default: that of the protocol, as at the mock upstream. */
  readonly path?: string
  /** Additional request headers. */
  readonly headers?: Readonly<Record<string, string>>
  readonly bearer: string | null
  readonly stream: boolean
  /** Whether responses are stored. */
  readonly store: boolean
  /** `GET` of the model list instead of a generation. */
  readonly listsModels?: boolean
}

/** Job of the load client, sent as JSON on its standard input. */
export type LoadJob = LoadRequest & {
  readonly connections: number
  /**
   * `repeat`: consecutive requests on each connection until the window ends. `once`: one request.
   * `leave`: one request; the window starts `windowStartMs` after every stream has had its first
   * token, and clients disconnect when it ends. For saturated machines.
   */
  readonly mode: 'repeat' | 'once' | 'leave'
  /** Duration over which connections are started evenly. */
  readonly rampMs: number
  /** Metrics cover the window; everything is checked. */
  readonly windowStartMs: number
  readonly windowMs: number
  /** Each connection uses the seed of the plan plus its index. */
  readonly plans: readonly Plan[]
  /** Requests that are still open then have failed. */
  readonly deadlineMs: number
  /** Root of the process tree whose CPU time is measured over the window. */
  readonly measurePid: number | null
  /** Expected refusal status; default: none. */
  readonly refusalStatus?: number
  /** Interval of `LoadProgress` on standard error; default: never. */
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

/** Result, as JSON on standard output. */
export type LoadReport = {
  readonly elapsedMs: number
  readonly requests: number
  readonly events: number
  readonly tokens: number
  readonly heartbeats: number
  readonly lateTokens: number
  /** Responses with the expected refusal status. */
  readonly refused: number
  /** Number of streams with a token, and time of the latest first token. */
  readonly begun: { readonly streams: number; readonly lastAfterMs: number }
  readonly faults: Faults
  readonly window: {
    readonly ms: number
    readonly requests: number
    readonly tokens: number
    readonly cpuMs: number | null
    /** CPU by thread; null if not measured. */
    readonly cpu: CpuUse | null
  }
  /** Time to first token, or to the complete response if not streamed. */
  readonly firstTokenMs: Quantiles
  /** Time to the end of the response, for responses that ended in the window. */
  readonly wholeMs: Quantiles
  /** Lag behind the upstream's schedule. */
  readonly latenessMs: Quantiles
  /** Time between two tokens of a stream. */
  readonly gapMs: Quantiles
  /** Time between two tokens of a stream beyond the plan. */
  readonly gapBeyondMs: Quantiles
}
