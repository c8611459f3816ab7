import { createLru } from '#lib/lru.ts'

export type Resampler = ReturnType<typeof createResampler>

/**
 * Converts mono samples to another rate. The first output sample has the time of the first input
 * sample, and the output has the duration of the input. It does not depend on the chunking.
 */
export function createResampler(fromHz: number, toHz: number) {
  const kernel = resampleKernel(fromHz, toHz)
  const { step, phases, reach } = kernel
  // The first output sample is preceded by silence.
  let history = new Float32Array(reach - 1)
  /** The position of the next output sample: `phase` after `history[index + reach - 1]`. */
  let index = 0
  let phase = 0

  /** The output samples whose surroundings are complete. */
  const push = (samples: Float32Array): Float32Array => {
    const grown = new Float32Array(history.length - index + samples.length)
    grown.set(history.subarray(index))
    grown.set(samples, history.length - index)
    history = grown
    index = 0
    const indexEnd = history.length - 2 * reach + 1
    const count = Math.max(0, Math.ceil((indexEnd * phases - phase) / step))
    const output = new Float32Array(count)
    for (let at = 0; at < count; at++) {
      output[at] = convolve(kernel, history, index, phase)
      phase += step
      const whole = Math.floor(phase / phases)
      index += whole
      phase -= whole * phases
    }
    return output
  }

  /** `flush` returns the remaining samples, followed by silence. */
  return { push, flush: () => push(new Float32Array(reach)) }
}

function convolve(
  { rows, phases, interpolated }: ResampleKernel,
  history: Float32Array,
  index: number,
  phase: number,
): number {
  if (!interpolated) return dot(rows[phase] as Float32Array, history, index)
  const place = (phase / phases) * (rows.length - 1)
  const lower = Math.floor(place)
  const weight = place - lower
  const below = dot(rows[lower] as Float32Array, history, index)
  return below + weight * (dot(rows[lower + 1] as Float32Array, history, index) - below)
}

/** Four independent sums, which the processor computes in parallel. */
function dot(row: Float32Array, history: Float32Array, from: number): number {
  let first = 0
  let second = 0
  let third = 0
  let fourth = 0
  for (let at = 0; at < row.length; at += 4) {
    const place = from + at
    first += (row[at] as number) * (history[place] as number)
    second += (row[at + 1] as number) * (history[place + 1] as number)
    third += (row[at + 2] as number) * (history[place + 2] as number)
    fourth += (row[at + 3] as number) * (history[place + 3] as number)
  }
  return first + second + (third + fourth)
}

/**
 * The polyphase low-pass of one rate conversion: one row of coefficients for each position of an
 * output sample between two input samples. A Kaiser-windowed sinc whose stop band starts at the
 * lower Nyquist frequency to prevent aliasing; the pass band ends at 0.84 of it.
 */
type ResampleKernel = {
  /** Output samples are at multiples of `step / phases` input samples, in lowest terms. */
  readonly step: number
  readonly phases: number
  /** Input samples on each side of an output sample; an even number. */
  readonly reach: number
  /** Rows of `2 * reach` coefficients, the first for input sample `1 - reach`. */
  readonly rows: readonly Float32Array[]
  /** With fewer rows than phases, two neighbouring rows are interpolated. */
  readonly interpolated: boolean
}

/** Lobes of the sinc on each side, at the lower of the two rates. */
const lobes = 40
/** Kaiser's beta for a stop band at -100 dB, and the width of its transition in lobes. */
const beta = 10.06
const transitionLobes = 6.41

/** Above this many phases rows are interpolated; two rates may have no common divisor. */
const exactPhasesMax = 1024
const interpolatedRows = 512

const kernelsMax = 16
const kernels = createLru<string, ResampleKernel>(kernelsMax)

function resampleKernel(fromHz: number, toHz: number): ResampleKernel {
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
  // In cycles per input sample; half the transition band is below it and ends at Nyquist.
  const cutoff = (0.5 / stretch) * (1 - transitionLobes / 2 / lobes)
  const interpolated = phases > exactPhasesMax
  // A wider filter is smoother and needs fewer rows for the same error.
  const places = interpolated ? Math.ceil(interpolatedRows / Math.min(stretch, 4)) : phases
  const rows = Array.from({ length: interpolated ? places + 1 : places }, (_, place) =>
    makeRow(place / places, reach, halfWidth, cutoff),
  )
  return { step, phases, reach, rows, interpolated }
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

/** The modified Bessel function of order zero, as a power series. */
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
