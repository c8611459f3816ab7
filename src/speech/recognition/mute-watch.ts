import type { SpeechMap } from './speech-map.ts'

/** Notices an engine that takes speech in and says nothing about it. */
export type MuteWatch = {
  /** An engine begins at this time of the session. */
  restart(atMs: number): void
  /** The engine said something when it had taken in so much. */
  token(processedMs: number): void
  /**
   * Speech without a word, once it is too much, else null. It is told once of each of two engines;
   * then not again before one of them says something.
   */
  check(processedMs: number, hasPartials: boolean): MuteSpeech | null
}

type MuteSpeech = {
  readonly startMs: number
  readonly endMs: number
  readonly speechMs: number
  /** Whether the engine before this one said nothing to it either: another one would not help. */
  readonly isAgreed: boolean
}

/** What an engine without partials may need after a pause, in audio, until it gives its final. */
const finalDelayMs = 2_000

export function createMuteWatch(muteMs: number, speech: SpeechMap): MuteWatch {
  let fromMs = 0
  let times = 0

  return {
    restart(atMs) {
      fromMs = atMs
    },
    token(processedMs) {
      fromMs = Math.max(fromMs, processedMs)
      times = 0
    },
    check(processedMs, hasPartials) {
      const heard = speech.within(fromMs, processedMs)
      // Without partials a text can only be missed where its utterance is over.
      const stretches = hasPartials
        ? heard
        : heard.filter(({ endMs }) => endMs + finalDelayMs <= processedMs)
      const speechMs = stretches.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0)
      const [first] = stretches
      if (first === undefined || speechMs < muteMs) return null
      fromMs = processedMs
      times += 1
      if (times > 2) return null
      return { startMs: first.startMs, endMs: processedMs, speechMs, isAgreed: times === 2 }
    },
  }
}
