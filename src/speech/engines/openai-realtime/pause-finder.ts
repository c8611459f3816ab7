import { createVoiceActivity } from '#speech/voice-activity.ts'

/** Where audio can be cut into utterances, for servers that do not look for pauses themselves. */
export type PauseFinder = {
  /** Says after these samples whether to cut here: in a pause, or because it lasts too long. */
  push(samples: Int16Array): 'pause' | 'length' | null
  /** The speech since the last cut; null where none was heard. */
  speech(): Stretch | null
  /** The same, and begins anew. */
  cut(): Stretch | null
}

type Stretch = { readonly startMs: number; readonly endMs: number }

/** Longer utterances make these models slow and forgetful. */
const utteranceMsMax = 30_000
/** How much longer one may last in the midst of a sentence. */
const graceMs = 10_000

export function createPauseFinder(sampleRateHz: number, pauseMs: number): PauseFinder {
  const voice = createVoiceActivity(sampleRateHz)
  let seenMs = 0
  let cutMs = 0
  let startMs: number | null = null
  let endMs = 0
  const speech = () => (startMs === null ? null : { startMs, endMs: Math.max(startMs, endMs) })
  return {
    push(samples) {
      seenMs += (samples.length * 1000) / sampleRateHz
      for (const change of voice.push(samples)) {
        if (change.speaking) startMs ??= change.atMs
        else endMs = change.endMs
      }
      const current = voice.current()
      if (current !== null) endMs = current.endMs
      if (startMs !== null && current === null && seenMs - endMs >= pauseMs) return 'pause'
      const longestMs = current === null ? utteranceMsMax : utteranceMsMax + graceMs
      return seenMs - cutMs >= longestMs ? 'length' : null
    },
    speech,
    cut() {
      const stretch = speech()
      cutMs = seenMs
      startMs = null
      // What is said behind it is speech of its own.
      voice.cut()
      return stretch
    },
  }
}
