/**
 * How much of a limit per period is used. Use empties at a constant rate (a token bucket seen from the
 * other side): at most `limit` at once, and `limit` per period in the long run. What a call used beyond
 * its estimate stays as debt.
 *
 * Shared with other processes, it spends units that were leased from the database (`units`), so all
 * processes together never take more than the database gave out.
 */
export class RateMeter {
  readonly key: string
  readonly periodMs: number
  limit: number
  /** Open reservations; an entry with any is never evicted. */
  open = 0
  /** Used in this process; of a shared meter, in all processes as of `atMs`. */
  #used = 0
  #atMs: number
  readonly share: RateShare | null

  constructor(key: string, limit: number, options: RateMeterOptions) {
    this.key = key
    this.limit = limit
    this.periodMs = options.periodMs
    this.#atMs = options.nowMs
    this.share = options.isShared ? new RateShare(options.nowMs) : null
  }

  get perMs(): number {
    return this.limit / this.periodMs
  }

  used(nowMs: number): number {
    const elapsedMs = nowMs - this.#atMs
    if (elapsedMs > 0) {
      this.#used = Math.max(0, this.#used - elapsedMs * this.perMs)
      this.#atMs = nowMs
    }
    return this.#used
  }

  /** What this process can take now. */
  available(nowMs: number): number {
    return this.share === null ? this.limit - this.used(nowMs) : this.share.available(this, nowMs)
  }

  take(amount: number, nowMs: number): void {
    this.open++
    this.#add(amount, nowMs)
  }

  /** Ends a reservation: the difference to what was taken, which may be negative. */
  settle(difference: number, nowMs: number): void {
    this.open--
    this.#add(difference, nowMs)
  }

  #add(amount: number, nowMs: number): void {
    if (this.share === null) this.#used = Math.max(0, this.used(nowMs) + amount)
    else this.share.spend(amount, nowMs)
  }

  /** As the database has it. */
  adopt(used: number, nowMs: number): void {
    this.#used = used
    this.#atMs = nowMs
  }

  /** What callers can still take in all processes, as far as known. */
  remaining(nowMs: number): number {
    return Math.min(this.limit, Math.max(0, this.#headroom(nowMs)))
  }

  /** Negative: debt. */
  #headroom(nowMs: number): number {
    return this.limit - this.used(nowMs) + (this.share?.units ?? 0)
  }

  /** Until `amount` is available; infinite for more than the limit. */
  waitMs(amount: number, nowMs: number): number {
    if (amount > this.limit) return Number.POSITIVE_INFINITY
    const missing = amount - this.#headroom(nowMs)
    return missing <= 0 ? 0 : missing / this.perMs
  }

  /** Until nothing is used. */
  resetMs(nowMs: number): number {
    if (this.limit === 0) return this.periodMs
    return Math.max(0, this.limit - this.#headroom(nowMs)) / this.perMs
  }

  isIdle(nowMs: number): boolean {
    return this.open === 0 && (this.share?.isEmpty() ?? true) && this.used(nowMs) === 0
  }
}

type RateMeterOptions = {
  readonly periodMs: number
  readonly nowMs: number
  readonly isShared: boolean
}

/** The share of this process in a meter. */
export class RateShare {
  /** Leased and not spent; negative: spent beyond the lease, to be reported. */
  units = 0
  /** Spent, in a report that failed. */
  owed = 0
  /** Calls that wait for units. */
  waiting = 0
  /** What they need that was not asked for yet, all and the least of them. */
  wanted = 0
  least = Number.POSITIVE_INFINITY
  spentAtMs: number
  /** The database has none before this time. */
  emptyUntilMs = Number.NEGATIVE_INFINITY
  /**
   * While the database is unreachable: the part of the limit that this process has, and what of it may
   * be spent beyond the units, refilled until `sinceMs`. Only what is spent is reported, as debt.
   */
  #outage: { part: number; allowance: number; sinceMs: number } | null = null

  constructor(nowMs: number) {
    this.spentAtMs = nowMs
  }

  /** In an outage, the share goes on: its part of the limit refills here. */
  available(meter: RateMeter, nowMs: number): number {
    const outage = this.#outage
    if (outage === null) return this.units
    const refilled = (nowMs - outage.sinceMs) * meter.perMs * outage.part
    const missing = meter.limit * outage.part - this.units - outage.allowance
    outage.allowance += Math.min(refilled, Math.max(0, missing))
    outage.sinceMs = nowMs
    return this.units + outage.allowance
  }

  want(amount: number): void {
    this.wanted += amount
    this.least = Math.min(this.least, amount)
  }

  spend(amount: number, nowMs: number): void {
    this.units -= amount
    if (amount > 0) this.spentAtMs = nowMs
  }

  /** A process without a share starts with its part of the limit. */
  beginOutage(meter: RateMeter, part: number, nowMs: number): void {
    if (this.#outage !== null) return
    const start = Math.min(Math.max(1, meter.limit * part), meter.limit)
    this.#outage = { part, allowance: Math.max(0, start - this.units), sinceMs: nowMs }
  }

  /** Takes what was spent beyond the units, to report it. */
  takeDebt(): number {
    const debt = Math.max(0, -this.units)
    this.units += debt
    if (this.#outage !== null) this.#outage.allowance -= debt
    return debt
  }

  endOutage(): void {
    this.#outage = null
  }

  isEmpty(): boolean {
    return this.units === 0 && this.owed === 0 && this.waiting === 0
  }
}
