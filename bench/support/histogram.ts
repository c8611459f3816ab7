/** Formats milliseconds with sensible precision. */
export type Quantiles = {
  readonly count: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly p999: number
  readonly max: number
}

/** Buckets grow by 1 %, from 1 µs to about 15 minutes. */
const growth = 1.01
const logGrowth = Math.log(growth)
const smallestMs = 0.001
const bucketCount = 2100

/** Durations in constant memory; quantiles are exact to 1 %. */
export class Histogram {
  readonly #buckets = new Uint32Array(bucketCount)
  #count = 0
  #max = 0

  record(durationMs: number): void {
    const bucket = Math.ceil(Math.log(durationMs / smallestMs) / logGrowth)
    const index = durationMs <= smallestMs ? 0 : Math.min(bucket, bucketCount - 1)
    this.#buckets[index] = (this.#buckets[index] ?? 0) + 1
    this.#count++
    if (durationMs > this.#max) this.#max = durationMs
  }

  quantiles(): Quantiles {
    return {
      count: this.#count,
      p50: this.#quantile(0.5),
      p90: this.#quantile(0.9),
      p99: this.#quantile(0.99),
      p999: this.#quantile(0.999),
      max: rounded(this.#max),
    }
  }

  #quantile(fraction: number): number {
    const rank = Math.ceil(this.#count * fraction)
    let seen = 0
    for (let index = 0; index < bucketCount; index++) {
      seen += this.#buckets[index] ?? 0
      if (seen >= rank) return rounded(Math.min(smallestMs * growth ** index, this.#max))
    }
    return rounded(this.#max)
  }
}

function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000
}
