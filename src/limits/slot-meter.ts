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

  constructor(key: string, limit: number, { isShared }: { isShared: boolean }) {
    this.key = key
    this.limit = limit
    this.share = isShared ? new SlotShare() : null
  }

  available(): number {
    const held = this.share === null ? this.limit : Math.min(this.share.held, this.limit)
    return held - this.inUse
  }

  take(): void {
    this.inUse++
  }

  release(): void {
    this.inUse--
  }

  isIdle(): boolean {
    const { inUse, share } = this
    return inUse === 0 && (share === null || (share.held === 0 && share.wanted === 0))
  }
}

/** The share of this process in the slots of a limit. */
export class SlotShare {
  /** Leased from the database, used or not. */
  held = 0
  /** Needed by waiting calls. */
  wanted = 0
  /** All slots are leased, at least until then. */
  emptyUntilMs = Number.NEGATIVE_INFINITY
}
