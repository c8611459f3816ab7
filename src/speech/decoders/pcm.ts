import { createByteReader } from './byte-reader.ts'
import { type AudioDecoder, AudioError, type AudioFaults, pieceMsMax } from './decoder.ts'
import { meanOfChannels, type SampleFormat, sampleBytes } from './pcm-samples.ts'
import { createSampleOutput, sourceRateHzMax, sourceRateHzMin } from './sample-output.ts'

/** The most that is turned into samples at once. */
const sliceFrames = 4096

/** Bare samples; a frame may be cut anywhere, and what is left of one at the end is dropped. */
export function openPcmDecoder(
  format: SampleFormat,
  sourceRateHz: number,
  channels: number,
  engineRateHz: number,
  faults: AudioFaults,
): AudioDecoder {
  if (!(sourceRateHz >= sourceRateHzMin && sourceRateHz <= sourceRateHzMax)) {
    throw unsupportedRate(sourceRateHz)
  }
  if (format === 'int16' && channels === 1 && sourceRateHz === engineRateHz) {
    return openPlainDecoder(engineRateHz, faults)
  }
  const output = createSampleOutput(engineRateHz, faults)
  const reader = createByteReader()
  const frameBytes = sampleBytes[format] * channels
  return {
    faults,
    sourceRateHz,
    *decode(bytes) {
      reader.accept(bytes)
      for (;;) {
        const frames = Math.min(sliceFrames, Math.floor(reader.available / frameBytes))
        // A frame that is not whole yet is kept by asking for it.
        const slice = reader.peek(Math.max(1, frames) * frameBytes)
        if (slice === null) return
        const samples = meanOfChannels(slice, format, channels, faults)
        reader.drop(slice.length)
        yield* output.write(samples, sourceRateHz)
      }
    },
    end: () => output.end(),
    close() {},
  }
}

/** Samples that are already as the engine wants them: by far the most that comes, so only copied. */
function openPlainDecoder(engineRateHz: number, faults: AudioFaults): AudioDecoder {
  const reader = createByteReader()
  const pieceSamplesMax = Math.floor((engineRateHz * pieceMsMax) / 1000)
  return {
    faults,
    sourceRateHz: engineRateHz,
    *decode(bytes) {
      const isWhole = reader.available === 0 && bytes.length % 2 === 0
      if (bytes.length === 0) return
      if (isWhole && bytes.length <= pieceSamplesMax * 2) {
        yield samplesOf(bytes, bytes.length >> 1)
        return
      }
      reader.accept(bytes)
      for (;;) {
        const count = Math.min(pieceSamplesMax, reader.available >> 1)
        // A sample that is not whole yet is kept by asking for it.
        const slice = reader.peek(Math.max(1, count) * 2)
        if (slice === null) return
        yield samplesOf(slice, count)
        reader.drop(slice.length)
      }
    },
    end: () => [],
    close() {},
  }
}

/** For so few samples a loop is quicker than a view of their memory. */
function samplesOf(bytes: Uint8Array, count: number): Int16Array {
  const samples = new Int16Array(count)
  for (let at = 0, from = 0; at < count; at++, from += 2) {
    samples[at] = (bytes[from] as number) | ((bytes[from + 1] as number) << 8)
  }
  return samples
}

export function unsupportedRate(rateHz: number): AudioError {
  return new AudioError(
    'unsupported_audio',
    `Audio is taken at ${sourceRateHzMin} to ${sourceRateHzMax} Hz; this is at ${rateHz} Hz.`,
    { sample_rate_hz: rateHz },
  )
}
