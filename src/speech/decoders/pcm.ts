import { createByteReader } from './byte-reader.ts'
import { type AudioDecoder, AudioError, type AudioFaults } from './decoder.ts'
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

export function unsupportedRate(rateHz: number): AudioError {
  return new AudioError(
    'unsupported_audio',
    `Audio is taken at ${sourceRateHzMin} to ${sourceRateHzMax} Hz; this is at ${rateHz} Hz.`,
    { sample_rate_hz: rateHz },
  )
}
