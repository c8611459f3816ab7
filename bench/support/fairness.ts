/** Measures of fairness, for `bench traffic` and its simulation in the tests. */

/** Jain's index: 1 if all have the same, 1/n if one has everything. */
export function jainIndex(values: readonly number[]): number {
  let sum = 0
  let squares = 0
  for (const value of values) {
    sum += value
    squares += value * value
  }
  return squares === 0 ? 1 : (sum * sum) / (values.length * squares)
}

/**
 * The max-min fair shares of a capacity: who asks for less than an equal share gets it, and the others
 * divide the rest equally.
 */
export function fairShares(demands: readonly number[], capacity: number): number[] {
  const shares = demands.map(() => 0)
  const rising = demands.map((demand, at) => ({ demand, at })).sort((a, b) => a.demand - b.demand)
  let left = capacity
  for (const [index, { demand, at }] of rising.entries()) {
    const share = Math.min(demand, left / (rising.length - index))
    shares[at] = share
    left -= share
  }
  return shares
}

/** Jain's index of what each who asked got as a part of its max-min fair share. */
export function fairnessOf(demands: readonly number[], served: readonly number[]): number {
  const capacity = served.reduce((sum, value) => sum + value, 0)
  const parts = fairShares(demands, capacity).map((share, at) => (served[at] ?? 0) / share)
  return jainIndex(parts.filter((_, at) => (demands[at] ?? 0) > 0))
}

/**
 * Jain's index as a part of the best one for this number of calls: whole calls cannot be divided equally.
 * In ten seconds each of two hundred callers of `bench traffic` sends one or two calls, so a perfectly
 * fair queue has an index of 0.953 there, and of 0.998 in a minute.
 */
export function fairnessOfWhole(served: readonly number[]): number {
  const calls = served.reduce((sum, value) => sum + value, 0)
  const [each, left] = [Math.floor(calls / served.length), calls % served.length]
  const best = served.map((_, at) => (at < left ? each + 1 : each))
  return jainIndex(served) / jainIndex(best)
}

export function quantile(values: readonly number[], fraction: number): number {
  const sorted = values.toSorted((left, right) => left - right)
  return sorted[Math.max(0, Math.ceil(sorted.length * fraction) - 1)] ?? 0
}
