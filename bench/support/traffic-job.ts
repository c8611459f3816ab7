/** Requests that each upstream of `traffic` serves at the same time. */
export const slotsPerUpstream = 8

/** A job of the callers of `traffic`, sent as JSON on standard input. */
export type TrafficJob = {
  readonly port: number
  /** The credential of each caller. */
  readonly bearers: readonly string[]
  readonly model: string
  /** Calls per second of each caller; null: as many as `outstanding` allows. */
  readonly perSecond: readonly number[] | null
  /** Calls of each caller at the same time; those beyond it are not sent. */
  readonly outstanding: readonly number[]
  /** Calls that are sent in this window count. */
  readonly windowStartMs: number
  readonly windowMs: number
  readonly seed: number
}

type CallerReport = {
  readonly sent: number
  readonly completed: number
  /** Time from sending the call to its arrival at the upstream. */
  readonly waitsMs: readonly number[]
}

export type TrafficReport = {
  readonly callers: readonly CallerReport[]
  /** Calls that did not complete, by status and error code. */
  readonly refused: Readonly<Record<string, number>>
  /** Refusals with status 429 or 503 that have no `retry-after`. */
  readonly withoutRetryAfter: number
  /** Completed calls by upstream. */
  readonly byUpstream: Readonly<Record<string, number>>
}

/** What an upstream saw since the last question. */
export type UpstreamStats = {
  /** Slots in use, times their time. */
  readonly busyMs: number
  readonly forMs: number
  readonly requests: number
  readonly inFlight: number
  readonly inFlightMax: number
}
