/** What happens at a deadline. */
export type Expiring = { expire(): void }

/**
 * Deadlines that are equally far away, with one timer for all of them: most of what has a deadline ends
 * long before, and a timer of its own would be made and cleared for nothing.
 */
export class Deadlines {
  readonly limitMs: number
  /** When each is due (`performance.now()`); the earliest is the first. */
  readonly #dueAtMs = new Map<Expiring, number>()
  #isArmed = false

  constructor(limitMs: number) {
    this.limitMs = limitMs
  }

  add(item: Expiring) {
    this.#dueAtMs.set(item, performance.now() + this.limitMs)
    if (!this.#isArmed) this.#arm(this.limitMs)
  }

  remove(item: Expiring) {
    this.#dueAtMs.delete(item)
  }

  /** The timer stays when what it was for is removed: there will be others. */
  #arm(ms: number) {
    this.#isArmed = true
    setTimeout(() => this.#check(), ms).unref()
  }

  #check() {
    const nowMs = performance.now()
    for (const [item, dueAtMs] of this.#dueAtMs) {
      if (dueAtMs > nowMs) return this.#arm(dueAtMs - nowMs)
      this.#dueAtMs.delete(item)
      item.expire()
    }
    this.#isArmed = false
  }
}
