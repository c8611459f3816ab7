import fc from 'fast-check'

/** Runs per property in CI; `SLUICE_PROPERTY_RUNS=20` makes twenty times as many. */
const runsFactor = Number(process.env['SLUICE_PROPERTY_RUNS'] ?? 1)
/** Fixed, so that CI fails for a change and not for luck; `SLUICE_PROPERTY_SEED=random` explores. */
const givenSeed = process.env['SLUICE_PROPERTY_SEED'] ?? '20261123'

const runsOf = (runs: number) => Math.max(1, Math.round(runs * runsFactor))

/** A failure names the seed, the path to the counterexample, and the counterexample. */
function propertyOptions(runs: number): { numRuns: number; seed?: number } {
  const numRuns = runsOf(runs)
  return givenSeed === 'random' ? { numRuns } : { numRuns, seed: Number(givenSeed) }
}

/** Checks a synchronous property. */
export function holds<T>(values: fc.Arbitrary<T>, check: (value: T) => void, runs = 100): void {
  fc.assert(fc.property(values, check), propertyOptions(runs))
}

/** Checks an asynchronous property, one value after the other. */
export async function holdsAsync<T>(
  values: fc.Arbitrary<T>,
  check: (value: T) => Promise<void>,
  runs = 100,
): Promise<void> {
  await fc.assert(fc.asyncProperty(values, check), propertyOptions(runs))
}

/** Bytes in pieces, divided anywhere. */
export function piecesOf(bytes: fc.Arbitrary<Uint8Array>): fc.Arbitrary<Uint8Array[]> {
  return fc
    .tuple(bytes, fc.array(fc.nat(), { maxLength: 12 }))
    .map(([whole, cuts]) => divide(whole, cuts))
}

/** Every position of `cuts` is taken modulo the length. */
export function divide(whole: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const at = [...new Set(cuts.map((cut) => cut % (whole.length + 1)))].sort((a, b) => a - b)
  return [0, ...at].map((start, index) => whole.slice(start, at[index] ?? whole.length))
}
