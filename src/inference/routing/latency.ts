/** The least weight of a new value; the first values are averaged. */
const newValueShareMin = 0.05

/** A moving average of a time, and of its deviation. */
export class Latency {
  meanMs = 0
  samples = 0
  #deviationMs = 0

  add(ms: number) {
    this.samples++
    const share = Math.max(newValueShareMin, 1 / this.samples)
    const differenceMs = ms - this.meanMs
    this.meanMs += share * differenceMs
    this.#deviationMs += share * (Math.abs(differenceMs) - this.#deviationMs)
  }

  /** A time that is rarely exceeded. */
  get highMs(): number {
    return this.meanMs + 4 * this.#deviationMs
  }
}
