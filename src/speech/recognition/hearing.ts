import { createVoiceActivity } from '#speech/voice-activity.ts'
import { createSpeechMap, type SpeechMap } from './speech-map.ts'
import type { Timescale } from './timescale.ts'

/** What we hear ourselves, whatever engines say: how much came, and where somebody speaks in it. */
export type Hearing = {
  readonly speech: SpeechMap
  write(samples: Int16Array): void
  receivedMs(): number
  /** Until here it is known whether somebody spoke. */
  knownMs(): number
  /** Whether nobody spoke for a moment before this time. */
  isQuietAt(atMs: number): boolean
}

/** Speech is noticed after so much of it. */
const onsetMs = 100
/** In so much silence nobody is cut short. */
const quietMs = 300

export function createHearing(timescale: Timescale): Hearing {
  const voice = createVoiceActivity(timescale.sampleRateHz)
  const speech = createSpeechMap()
  let received = 0

  return {
    speech,
    write(samples) {
      received += samples.length
      for (const change of voice.push(samples)) {
        if (!change.speaking) speech.add(change)
      }
      speech.setCurrent(voice.current())
    },
    receivedMs: () => timescale.toMs(received),
    knownMs: () => Math.max(0, timescale.toMs(received) - onsetMs),
    isQuietAt: (atMs) => speech.speechMs(atMs - quietMs, atMs) === 0,
  }
}
