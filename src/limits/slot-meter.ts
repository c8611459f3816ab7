/**
 * How many of a limited number of slots are in use: generations or speech sessions at the same time.
 * Shared with other processes, it uses slots that were leased from the database.
 */
export class SlotMeter {
  readonly key: string
  limit: number
  /** In use in this process. */
  inUse = 0
  readonly share: SlotShare | null

  constructor(key: string, limit: number, term: LeaseTerm | null) {
    this.key = key
    this.limit = limit
    this.share = term === null ? null : new SlotShare(term)
  }

  available(nowMs: number): number {
    if (this.share === null) return this.limit - this.inUse
    return Math.min(this.limit, this.share.usable(nowMs)) - this.inUse
  }

  take(nowMs: number): void {
    this.inUse++
    if (this.share !== null) this.share.takenAtMs = nowMs
  }

  release(): void {
    this.inUse--
  }

  isIdle(): boolean {
    const { inUse, share } = this
    return inUse === 0 && (share === null || (share.held === 0 && share.waiting === 0))
  }
}

/** How long the leases of this process hold. One object for all of them. */
export type LeaseTerm = {
  /** Afterwards other processes may have been given the slots. */
  validUntilMs: number
  /** While the database is unreachable, the last share goes on. */
  isOutage: boolean
}

/** The share of this process in the slots of a limit. */
export class SlotShare {
  /** Leased from the database, used or not. */
  held = 0
  /** Calls that wait for a slot. */
  waiting = 0
  takenAtMs = Number.NEGATIVE_INFINITY
  readonly #term: LeaseTerm

  constructor(term: LeaseTerm) {
    this.#term = term
  }

  usable(nowMs: number): number {
    const { validUntilMs, isOutage } = this.#term
    return isOutage || nowMs < validUntilMs ? this.held : 0
  }
}
