/** Each further interval changes the mean by at least this share. */
const weightMin = 1 / 16

/** How fast a queue drains: the mean time between two grants, measured only while calls wait. */
export class DrainRate {
  #meanMs = 0
  #count = 0
  /** The last grant, or the time when calls began to wait. */
  #sinceMs = 0

  /** The queue is no longer empty. Time without waiting calls says nothing about the rate. */
  begin(nowMs: number) {
    this.#sinceMs = nowMs
  }

  granted(nowMs: number) {
    this.#count++
    const weight = Math.max(1 / this.#count, weightMin)
    this.#meanMs += (nowMs - this.#sinceMs - this.#meanMs) * weight
    this.#sinceMs = nowMs
  }

  /** When so many calls will have been granted; `unknownMs` per call before the first grant. */
  drainMs(calls: number, nowMs: number, unknownMs: number): number {
    // A queue that has stopped to drain is slower than its mean.
    const openMs = nowMs - this.#sinceMs
    const intervalMs = this.#count === 0 ? Math.max(unknownMs, openMs) : this.#meanMs
    return calls * intervalMs + Math.max(0, openMs - intervalMs)
  }
}
