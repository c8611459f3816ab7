/** The least weight of a new value; the first values are averaged. */
const newValueShareMin = 0.05

/** A moving average of a time, and of its deviation. */
export class Latency {
  samples = 0
  #meanMs = 0
  #deviationMs = 0
  /** Of the logarithms: one request that waited for a cold start does not change it much. */
  #meanLog = 0

  add(ms: number) {
    this.samples++
    const share = Math.max(newValueShareMin, 1 / this.samples)
    const differenceMs = ms - this.#meanMs
    this.#meanMs += share * differenceMs
    this.#meanLog += share * (Math.log1p(ms) - this.#meanLog)
    this.#deviationMs += share * (Math.abs(differenceMs) - this.#deviationMs)
  }

  get usualMs(): number {
    return Math.expm1(this.#meanLog)
  }

  /** A time that is rarely exceeded. */
  get highMs(): number {
    return this.#meanMs + 4 * this.#deviationMs
  }
}
