import type { HealthSettings } from './settings.ts'

/** `trial`: the ejection is over, and one request may show whether the failures are. */
export type Availability = 'available' | 'trial' | 'unavailable'

export type HealthHooks = {
  /** Whether a check of our own can tell that the reason of an ejection is over. */
  isProbed(isSilent: boolean): boolean
  /** Called when an ejection begins, and when it has ended with a success. */
  changed(isEjected: boolean): void
}

/** The most that an ejection grows, as a power of two. */
const growthMax = 10

/**
 * Passive outlier detection for an upstream, or for one model of it: consecutive failures eject it for
 * a time that doubles with each ejection in a row. Then a single request is on trial. After a success
 * its share of requests grows gradually.
 */
export class Health {
  /** Consecutive. */
  failures = 0
  ejectionsTotal = 0
  /** 0 while it is not ejected. */
  ejectedUntilMs = 0
  /** Until then it wants no requests, by its own account. */
  pausedUntilMs = 0
  /** Whether it was ejected because it sent nothing; an attempt then costs time, not only a failure. */
  isSilent = false
  /** Whether a check of our own has to succeed before a request is on trial. */
  awaitsProbe = false
  readonly #settings: HealthSettings
  readonly #hooks: HealthHooks
  #ejectionsInARow = 0
  #isOnTrial = false
  #returnedAtMs = Number.NEGATIVE_INFINITY

  constructor(settings: HealthSettings, hooks: HealthHooks) {
    this.#settings = settings
    this.#hooks = hooks
  }

  get isEjected(): boolean {
    return this.ejectedUntilMs !== 0
  }

  availability(nowMs: number): Availability {
    if (nowMs < this.pausedUntilMs) return 'unavailable'
    if (this.ejectedUntilMs === 0) return 'available'
    const mayTry = this.isDue(nowMs) && !this.#isOnTrial && !this.awaitsProbe
    return mayTry ? 'trial' : 'unavailable'
  }

  /** Whether an ejection is over, but not proven to have been long enough. */
  isDue(nowMs: number): boolean {
    return this.isEjected && nowMs >= this.ejectedUntilMs
  }

  /** The share of its requests that it should get: below 1 after its return. */
  recoveredShare(nowMs: number): number {
    const sinceMs = nowMs - this.#returnedAtMs
    if (sinceMs >= this.#settings.recoveryMs) return 1
    return Math.max(recoveredShareMin, sinceMs / this.#settings.recoveryMs)
  }

  beginTrial() {
    this.#isOnTrial = true
  }

  /** The request on trial ended without a result, as when its client disconnected. */
  endTrial() {
    this.#isOnTrial = false
  }

  succeed(nowMs: number) {
    this.failures = 0
    this.admit(nowMs)
  }

  /** Ends an ejection, but the next failure begins another one. */
  admit(nowMs: number) {
    if (this.ejectedUntilMs === 0) return
    this.ejectedUntilMs = 0
    this.isSilent = false
    this.awaitsProbe = false
    this.#returnedAtMs = nowMs
    this.#hooks.changed(false)
  }

  fail(nowMs: number) {
    this.failures++
    if (this.isEjected || this.failures >= this.#settings.failuresMax) this.eject(nowMs, this)
  }

  /** Requests that were sent before an ejection do not prolong it. */
  eject(nowMs: number, { isSilent }: { isSilent: boolean }) {
    const { ejectionMs, ejectionMaxMs } = this.#settings
    if (nowMs < this.ejectedUntilMs) return
    const isFirst = !this.isEjected
    if (isFirst) this.ejectionsTotal++
    if (nowMs - this.#returnedAtMs > ejectionMaxMs && isFirst) this.#ejectionsInARow = 0
    const grownMs = Math.min(ejectionMaxMs, ejectionMs * 2 ** this.#ejectionsInARow)
    this.#ejectionsInARow = Math.min(growthMax, this.#ejectionsInARow + 1)
    this.ejectedUntilMs = nowMs + grownMs
    this.isSilent = isSilent
    this.awaitsProbe = this.#hooks.isProbed(isSilent)
    this.#isOnTrial = false
    if (isFirst) this.#hooks.changed(true)
  }

  /** It asked for a pause itself, which is no sign of a fault. */
  pause(nowMs: number, pauseMs: number) {
    const untilMs = nowMs + Math.min(this.#settings.ejectionMaxMs, pauseMs)
    this.pausedUntilMs = Math.max(this.pausedUntilMs, untilMs)
  }

  get unavailableUntilMs(): number {
    return Math.max(this.ejectedUntilMs, this.pausedUntilMs)
  }
}

/** Of its requests, right after the return. */
const recoveredShareMin = 0.1
