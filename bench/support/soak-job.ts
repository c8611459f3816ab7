/** What the clients of a soak shall do; they get this as JSON on their standard input. */
export type SoakJob = {
  readonly port: number
  /** Credentials of users, one for each client. */
  readonly bearers: readonly string[]
  /** Of somebody who may change the configuration. */
  readonly adminBearer: string
  readonly seconds: number
  readonly seed: number
  /** Workers of the gateway: a key that was revoked is so on each of them. */
  readonly workers: number
  /** When a worker is killed, by the wall clock in ms; null: never. */
  readonly killAtMs: number | null
  readonly progressMs: number
}

/** How one request, or a few that belong together, came out. */
export type Outcome =
  /** All that was asked for came. */
  | 'whole'
  /** It was owed an error, and got a proper one. */
  | 'failed'
  /** The client left before the end, as it wanted to. */
  | 'left'

export type SoakTally = Record<Outcome, number> & {
  /** Neither, which must not be. */
  wrong: number
  /** Broken by the end of a worker that was killed. */
  cut: number
}

export type SoakProgress = {
  readonly progress: { readonly elapsedMs: number; readonly done: number; readonly wrong: number }
}

/** What came of it: one JSON on standard output. */
export type SoakReport = {
  readonly elapsedMs: number
  readonly kinds: Readonly<Record<string, SoakTally>>
  /** The first few things that were wrong, in words. */
  readonly samples: readonly string[]
}
