/** The state of one limit over time, for response headers. */
export type RateLimit = {
  readonly limit: number
  /** Rounded down, never negative. */
  readonly remaining: number
  /** Until nothing of the limit is used. */
  readonly resetS: number
}

/** The tightest limit of each kind that applies to a request; null: none. */
export type RateLimits = {
  readonly at: Date
  readonly requests: RateLimit | null
  readonly inputTokens: RateLimit | null
  readonly outputTokens: RateLimit | null
}
