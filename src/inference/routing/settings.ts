/** When an upstream counts as failing, and how it returns. */
export type HealthSettings = {
  /** Consecutive failures after which no further request is sent for a while. */
  readonly failuresMax: number
  /** The first ejection; it doubles with each one in a row. */
  readonly ejectionMs: number
  readonly ejectionMaxMs: number
  /** After its return, the share of a target grows to its full one over this time. */
  readonly recoveryMs: number
  /** An upstream that sent nothing for this long while requests wait for it is checked. */
  readonly silenceMs: number
  /**
   * A request without output for this long moves to another target, if its target gave no other
   * request output meanwhile. A target that is usually slower gets more time.
   */
  readonly patienceMs: number
  /** Whether upstreams that are ejected or silent are checked with requests of our own. */
  readonly probe: boolean
  /** The time that such a check has. */
  readonly probeMs: number
  /** Retries as a share of the requests to an upstream, beyond `retriesPerSecond`. */
  readonly retryShare: number
  /** Retries per second that are always allowed. */
  readonly retriesPerSecond: number
}

export const defaultHealthSettings: HealthSettings = {
  failuresMax: 3,
  ejectionMs: 5_000,
  ejectionMaxMs: 60_000,
  recoveryMs: 10_000,
  silenceMs: 1_000,
  patienceMs: 30_000,
  probe: true,
  probeMs: 2_000,
  retryShare: 0.2,
  retriesPerSecond: 10,
}
