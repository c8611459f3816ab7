import { createResampler, type Resampler } from '#lib/resample.ts'
import { AudioError, type AudioFaults, type AudioGap, createFaults, pieceMsMax } from './decoder.ts'

/** The accepted source rates; others are not speech, or not audio. */
const sourceRateHzMin = 4000
const sourceRateHzMax = 192_000
/** Enough for an engine to end the utterance before a gap; the rest is only counted. */
const filledMsMax = 2_000

export function requireSupportedRate(rateHz: number): void {
  if (rateHz >= sourceRateHzMin && rateHz <= sourceRateHzMax) return
  throw new AudioError(
    'unsupported_audio',
    `The sample rate must be ${sourceRateHzMin} to ${sourceRateHzMax} Hz; this is ${rateHz} Hz.`,
    { sample_rate_hz: rateHz },
  )
}

export type SampleOutput = ReturnType<typeof createSampleOutput>

/**
 * The last stage of every decoder: converts mono samples of any rate to pieces at the engine's rate.
 * `onGap` is called between the pieces before a gap and the silence in its place.
 */
export function createSampleOutput(engineRateHz: number, onGap: (gap: AudioGap) => void) {
  const faults = createFaults()
  const pieceSamplesMax = Math.floor((engineRateHz * pieceMsMax) / 1000)
  let rateHz = engineRateHz
  let resampler: Resampler | null = null

  function* end(): Generator<Int16Array> {
    if (resampler === null) return
    const rest = resampler.flush()
    resampler = null
    if (rest.length > 0) yield toInt16(rest, faults)
  }

  return {
    faults,
    engineRateHz,
    pieceSamplesMax,
    /** Samples of -1 to 1. A change of rate starts a new conversion. */
    *write(samples: Float32Array, sourceRateHz: number): Generator<Int16Array> {
      if (sourceRateHz !== rateHz) {
        yield* end()
        rateHz = sourceRateHz
      }
      if (rateHz !== engineRateHz) resampler ??= createResampler(rateHz, engineRateHz)
      // A slice may produce one extra output sample, so the limit is reduced by one.
      const slice = Math.floor(((pieceSamplesMax - 1) * rateHz) / engineRateHz)
      for (let from = 0; from < samples.length; from += slice) {
        const part = replaceInvalid(samples.subarray(from, from + slice), faults)
        const piece = resampler === null ? part : resampler.push(part)
        if (piece.length > 0) yield toInt16(piece, faults)
      }
    },
    *gap(missingMs: number): Generator<Int16Array> {
      yield* end()
      let left = Math.round((Math.min(missingMs, filledMsMax) * engineRateHz) / 1000)
      if (left === 0) return
      onGap({ missingMs, filledMs: (left * 1000) / engineRateHz })
      for (; left > 0; left -= pieceSamplesMax) {
        yield new Int16Array(Math.min(left, pieceSamplesMax))
      }
    },
    end,
  }
}

/** A single NaN would affect many resampled samples. */
function replaceInvalid(samples: Float32Array, faults: AudioFaults): Float32Array {
  // The sum is finite only if all samples are; it cannot overflow.
  let sum = 0
  for (let at = 0; at < samples.length; at++) sum += samples[at] as number
  if (Number.isFinite(sum)) return samples
  return samples.map((sample) => {
    if (Number.isFinite(sample)) return sample
    faults.invalidSamples += 1
    return 0
  })
}

function toInt16(samples: Float32Array, faults: AudioFaults): Int16Array {
  const output = new Int16Array(samples.length)
  for (let at = 0; at < samples.length; at++) {
    const sample = samples[at] as number
    if (sample > 1 || sample < -1) faults.clippedSamples += 1
    output[at] = Math.max(-32_768, Math.min(32_767, Math.round(sample * 32_768)))
  }
  return output
}
