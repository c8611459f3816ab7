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
      reader.accept(bytes)
      for (;;) {
        const count = Math.min(pieceSamplesMax, reader.available >> 1)
        // A sample that is not whole yet is kept by asking for it.
        const slice = reader.peek(Math.max(1, count) * 2)
        if (slice === null) return
        const samples = new Int16Array(count)
        new Uint8Array(samples.buffer).set(slice)
        reader.drop(slice.length)
        yield samples
      }
    },
    end: () => [],
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
