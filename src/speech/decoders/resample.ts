import { type ResampleKernel, resampleKernel } from './resample-kernel.ts'

/**
 * Mono samples at one rate → the same sound at another. The first output sample stands at the time
 * of the first input sample, and there are as many as fit into the time of the input. However the
 * input is cut, the output is the same.
 */
export type Resampler = {
  push(samples: Float32Array): Float32Array
  /** The rest, with silence after the last sample. */
  flush(): Float32Array
}

export function createResampler(fromHz: number, toHz: number): Resampler {
  const kernel = resampleKernel(fromHz, toHz)
  const { step, phases, reach } = kernel
  // The first output sample looks back on silence.
  let history = new Float32Array(reach - 1)
  /** The place of the next output sample: after `history[index + reach - 1]` by `phase`. */
  let index = 0
  let phase = 0

  const run = (indexEnd: number): Float32Array => {
    const count = Math.max(0, Math.ceil(((indexEnd - index) * phases - phase) / step))
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

  const take = (samples: Float32Array) => {
    const grown = new Float32Array(history.length - index + samples.length)
    grown.set(history.subarray(index))
    grown.set(samples, history.length - index)
    history = grown
    index = 0
  }

  return {
    push(samples) {
      take(samples)
      return run(history.length - 2 * reach + 1)
    },
    flush() {
      take(new Float32Array(reach))
      return run(history.length - 2 * reach + 1)
    },
  }
}

function convolve(
  kernel: ResampleKernel,
  history: Float32Array,
  index: number,
  phase: number,
): number {
  if (!kernel.mixed) return dot(rowAt(kernel, phase), history, index)
  const place = (phase / kernel.phases) * (kernel.rows.length - 1)
  const lower = Math.floor(place)
  const weight = place - lower
  const below = dot(rowAt(kernel, lower), history, index)
  return below + weight * (dot(rowAt(kernel, lower + 1), history, index) - below)
}

function rowAt(kernel: ResampleKernel, place: number): Float32Array {
  return kernel.rows[place] as Float32Array
}

/** Four sums side by side, which the processor works out at once. */
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
