/** Job of the soak clients, sent as JSON on their standard input. */
export type SoakJob = {
  readonly port: number
  /** User tokens, one per client. */
  readonly bearers: readonly string[]
  /** Token of an administrator. */
  readonly adminBearer: string
  readonly seconds: number
  readonly seed: number
  /** Number of workers, since revocation must reach each of them. */
  readonly workers: number
  /** Wall clock time in ms at which a worker is killed; null: never. */
  readonly killAtMs: number | null
  readonly progressMs: number
}

/** Outcome of a scene. */
export type Outcome =
  /** Complete. */
  | 'whole'
  /** A planned error, correctly reported. */
  | 'failed'
  /** Abandoned by the client as planned. */
  | 'left'

export type SoakTally = Record<Outcome, number> & {
  /** Wrong: neither of these. */
  wrong: number
  /** Broken by the killed worker. */
  cut: number
}

export type SoakProgress = {
  readonly progress: { readonly elapsedMs: number; readonly done: number; readonly wrong: number }
}

/** Result, as JSON on standard output. */
export type SoakReport = {
  readonly elapsedMs: number
  readonly kinds: Readonly<Record<string, SoakTally>>
  /** Descriptions of the first faults. */
  readonly samples: readonly string[]
}
