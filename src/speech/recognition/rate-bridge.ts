import { createResampler } from '#speech/decoders/resample.ts'

/** The samples of a session for an engine that wants another rate than the session began with. */
export type RateBridge = {
  push(samples: Int16Array): Int16Array
  flush(): Int16Array
}

export function createRateBridge(fromHz: number, toHz: number): RateBridge {
  if (fromHz === toHz) return { push: (samples) => samples, flush: () => new Int16Array(0) }
  const resampler = createResampler(fromHz, toHz)
  return {
    push: (samples) => toWhole(resampler.push(Float32Array.from(samples))),
    flush: () => toWhole(resampler.flush()),
  }
}

function toWhole(samples: Float32Array): Int16Array {
  return Int16Array.from(samples, (sample) =>
    Math.max(-32_768, Math.min(32_767, Math.round(sample))),
  )
}
