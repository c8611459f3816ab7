/**
 * Two clocks of one session: what the program was given, and what the caller wrote. They differ by
 * the silence that was slipped in, in whose midst the caller's clock stands still.
 */
export type Timeline = {
  /** The caller's audio, in samples. */
  wrote(samples: number): void
  /** Silence of ours, in samples. */
  slippedIn(samples: number): void
  /** How much the program was given. */
  givenMs(): number
  /** The caller's time of a time of the program; never beyond what the caller wrote. */
  toCallerMs(programMs: number): number
}

type Silence = { readonly fromMs: number; readonly lengthMs: number }

/** Silences that a time may still lie before; older ones lie before every time that is asked for. */
const silencesMax = 64

export function createTimeline(sampleRateHz: number): Timeline {
  const toMs = (samples: number) => (samples * 1000) / sampleRateHz
  const silences: Silence[] = []
  let oldSilenceMs = 0
  let givenSamples = 0
  let writtenSamples = 0
  return {
    wrote(samples) {
      givenSamples += samples
      writtenSamples += samples
    },
    slippedIn(samples) {
      silences.push({ fromMs: toMs(givenSamples), lengthMs: toMs(samples) })
      givenSamples += samples
      if (silences.length > silencesMax) oldSilenceMs += silences.shift()?.lengthMs ?? 0
    },
    givenMs: () => toMs(givenSamples),
    toCallerMs(programMs) {
      const sinceMs = silences.reduce(
        (sum, { fromMs, lengthMs }) => sum + Math.min(lengthMs, Math.max(0, programMs - fromMs)),
        oldSilenceMs,
      )
      return Math.max(
        0,
        Math.min(Math.round(programMs - sinceMs), Math.floor(toMs(writtenSamples))),
      )
    },
  }
}
