import type { SessionRecorder } from './engine-session.ts'
import { eventually } from './eventually.ts'

const pieceMs = 100
const inFlightMsMax = 2_000

/**
 * Writes samples in pieces of 100 ms with at most two unprocessed seconds, as a recognition does.
 * `writtenMs`: audio written before.
 */
export async function writeAudio(
  recorder: SessionRecorder,
  samples: Int16Array,
  { sampleRateHz = 16_000, writtenMs = 0 } = {},
): Promise<void> {
  const pieceSamples = (sampleRateHz * pieceMs) / 1000
  const processedMs = () => recorder.of('progress').at(-1)?.processedMs ?? 0
  for (let from = 0; from < samples.length; from += pieceSamples) {
    const aheadMs = writtenMs + (from * 1000) / sampleRateHz - inFlightMsMax
    await eventually(
      'the engine accepts audio',
      () => processedMs() >= aheadMs || recorder.of('failed').length > 0,
    )
    recorder.session.write(samples.slice(from, from + pieceSamples))
  }
}

/** Concatenates samples. */
export function joined(...parts: readonly Int16Array[]): Int16Array {
  const all = new Int16Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}
