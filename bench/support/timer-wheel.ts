const slotCount = 1024

/**
 * One timer for thousands of streams: a ring of 1 ms slots. Entries fire at the first tick after
 * their due time; entries beyond one turn of the ring wait in their slot.
 */
export class TimerWheel<Entry extends { dueMs: number }> {
  readonly #slots: Entry[][] = Array.from({ length: slotCount }, () => [])
  readonly #fire: (entry: Entry, nowMs: number) => void
  #timer: ReturnType<typeof setInterval> | undefined
  #waiting = 0
  #tick = 0

  constructor(fire: (entry: Entry, nowMs: number) => void) {
    this.#fire = fire
  }

  /** `entry.dueMs` is a `performance.now()` time. */
  add(entry: Entry): void {
    if (this.#timer === undefined) {
      this.#tick = Math.floor(performance.now())
      this.#timer = setInterval(() => this.#turn(), 1)
    }
    this.#waiting++
    this.#slot(Math.max(Math.ceil(entry.dueMs), this.#tick + 1)).push(entry)
  }

  #turn(): void {
    const nowMs = performance.now()
    const last = Math.floor(nowMs)
    const first = Math.max(this.#tick + 1, last - slotCount + 1)
    for (let tick = first; tick <= last; tick++) {
      this.#tick = tick
      this.#fireDue(this.#slot(tick), nowMs)
    }
    if (this.#waiting > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #fireDue(slot: Entry[], nowMs: number): void {
    const entries = slot.splice(0)
    for (const entry of entries) {
      if (entry.dueMs > nowMs) {
        slot.push(entry)
        continue
      }
      this.#waiting--
      this.#fire(entry, nowMs)
    }
  }

  #slot(tick: number): Entry[] {
    const slot = this.#slots[tick % slotCount]
    if (slot === undefined) throw new Error('the timer wheel has no such slot')
    return slot
  }
}
