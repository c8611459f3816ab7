import { createLru } from '#lib/lru.ts'

/**
 * The low-pass of one change of rate, cut into phases: one row of coefficients for each place that
 * an output sample may have between two input samples. A windowed sinc (Kaiser) whose stop band
 * begins at the lower of the two Nyquist frequencies, so that nothing above it comes back as an
 * alias; what is below 0.84 of it passes untouched.
 */
export type ResampleKernel = {
  /** Output samples stand at multiples of `step / phases` of an input sample, in lowest terms. */
  readonly step: number
  readonly phases: number
  /** Input samples on each side of an output sample; an even number. */
  readonly reach: number
  /** Rows of `2 * reach` coefficients, the first for input sample `1 - reach`. */
  readonly rows: readonly Float32Array[]
  /** True where `rows` holds fewer places than there are phases: two neighbours are mixed then. */
  readonly mixed: boolean
}

/** Lobes of the sinc on each side, at the lower of the two rates. */
const lobes = 40
/** Kaiser's beta for a stop band at -100 dB, and the width of its transition in lobes. */
const beta = 10.06
const transitionLobes = 6.41

/** Above this many phases rows are mixed; two rates in hertz may have no common divisor at all. */
const exactPhasesMax = 1024
const mixedRows = 512

const kernelsMax = 16
const kernels = createLru<string, ResampleKernel>(kernelsMax)

export function resampleKernel(fromHz: number, toHz: number): ResampleKernel {
  const divisor = greatestCommonDivisor(fromHz, toHz)
  const step = fromHz / divisor
  const phases = toHz / divisor
  const key = `${step}/${phases}`
  const known = kernels.get(key)
  if (known !== undefined) return known
  const kernel = makeKernel(step, phases)
  kernels.set(key, kernel)
  return kernel
}

function makeKernel(step: number, phases: number): ResampleKernel {
  const stretch = Math.max(1, step / phases)
  const halfWidth = lobes * stretch
  const reach = 2 * Math.ceil(halfWidth / 2)
  // In cycles of an input sample; half the transition lies below it and ends at Nyquist.
  const cutoff = (0.5 / stretch) * (1 - transitionLobes / 2 / lobes)
  const mixed = phases > exactPhasesMax
  // A wider filter is a smoother one: it needs fewer rows for the same error.
  const places = mixed ? Math.ceil(mixedRows / Math.min(stretch, 4)) : phases
  const rows = Array.from({ length: mixed ? places + 1 : places }, (_, place) =>
    makeRow(place / places, reach, halfWidth, cutoff),
  )
  return { step, phases, reach, rows, mixed }
}

function makeRow(place: number, reach: number, halfWidth: number, cutoff: number): Float32Array {
  const row = new Float64Array(2 * reach)
  let sum = 0
  for (let index = 0; index < row.length; index++) {
    const distance = index - reach + 1 - place
    const inside = 1 - (distance / halfWidth) ** 2
    const window = inside <= 0 ? 0 : besselI0(beta * Math.sqrt(inside))
    const value = window * sinc(2 * cutoff * distance)
    row[index] = value
    sum += value
  }
  return Float32Array.from(row, (value) => value / sum)
}

function sinc(x: number): number {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x)
}

/** The modified Bessel function of order zero, by its power series. */
function besselI0(x: number): number {
  let term = 1
  let sum = 1
  for (let order = 1; term > sum * 1e-17; order++) {
    term *= (x / (2 * order)) ** 2
    sum += term
  }
  return sum
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b)
}
