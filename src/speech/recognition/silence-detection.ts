import type { TimeSpan } from './recognition.ts'
import { type SpeechSpans, totalMs } from './speech-activity.ts'

/** Speech without text, and whether the previous engine returned none for it either. */
export type SilentSpeech = TimeSpan & {
  readonly speechMs: number
  /** Another engine would not help. */
  readonly isConfirmed: boolean
}

/** Audio after a pause within which an engine without partials returns its final. */
const finalDelayMs = 2_000

/** Detects a silent engine: one that processes speech and returns no text for it. */
export class SilenceDetector {
  readonly #speechMsMax: number
  readonly #spans: SpeechSpans
  #fromMs = 0
  #detections = 0

  constructor(speechMsMax: number, spans: SpeechSpans) {
    this.#speechMsMax = speechMsMax
    this.#spans = spans
  }

  /** A new engine starts at this time of the session. */
  restart(atMs: number): void {
    this.#fromMs = atMs
  }

  /** The engine returned text when it had processed this much. */
  textReturned(processedMs: number): void {
    this.#fromMs = Math.max(this.#fromMs, processedMs)
    this.#detections = 0
  }

  /**
   * Returns speech without text once it exceeds the limit, else null. Reported once for each of two
   * engines, then not again until an engine returns text.
   */
  check(processedMs: number, hasPartials: boolean): SilentSpeech | null {
    const all = this.#spans.within(this.#fromMs, processedMs)
    // Without partials, text can only be missing where the utterance has ended.
    const spans = hasPartials ? all : all.filter(({ endMs }) => endMs + finalDelayMs <= processedMs)
    const speechMs = totalMs(spans)
    const [first] = spans
    if (first === undefined || speechMs < this.#speechMsMax) return null
    this.#fromMs = processedMs
    this.#detections += 1
    if (this.#detections > 2) return null
    const isConfirmed = this.#detections === 2
    return { startMs: first.startMs, endMs: processedMs, speechMs, isConfirmed }
  }
}
