import { samplesToMs } from '#speech/engine.ts'
import { VoiceActivity } from '#speech/voice-activity.ts'
import type { TimeSpan } from './recognition.ts'

/** Beyond this the oldest spans are joined, pauses included: they count as speech, not silence. */
const spansMax = 1_024
/** The voice-activity detector reports speech after this much of it. */
const onsetMs = 100
/** Silence of this length is a safe place to cut. */
const quietMs = 300

/** The spans of a session that contain speech, in order, as long as they are needed. */
export class SpeechSpans {
  readonly #spans: TimeSpan[] = []
  #current: TimeSpan | null = null

  /** Adds a completed span after all others. */
  add({ startMs, endMs }: TimeSpan): void {
    this.#spans.push({ startMs, endMs })
    const [first, second] = this.#spans
    if (this.#spans.length <= spansMax || first === undefined || second === undefined) return
    this.#spans.splice(0, 2, { startMs: first.startMs, endMs: second.endMs })
  }

  /** The span in progress; null in silence. */
  setCurrent(span: TimeSpan | null): void {
    this.#current = span
  }

  /** The speech within a range, clipped to it. */
  within(startMs: number, endMs: number): TimeSpan[] {
    const clipped: TimeSpan[] = []
    const add = (span: TimeSpan) => {
      const start = Math.max(startMs, span.startMs)
      const end = Math.min(endMs, span.endMs)
      if (start < end) clipped.push({ startMs: start, endMs: end })
    }
    for (const span of this.#spans) add(span)
    if (this.#current !== null) add(this.#current)
    return clipped
  }

  /** Whether the span at this time is still in progress. */
  isInProgressAt(atMs: number): boolean {
    const current = this.#current
    return current !== null && current.startMs <= atMs && atMs <= current.endMs
  }

  dropBefore(atMs: number): void {
    const kept = this.#spans.findIndex((span) => span.endMs > atMs)
    this.#spans.splice(0, kept < 0 ? this.#spans.length : kept)
  }
}

/**
 * Detects speech in the received audio of a session, independently of its engines. Owns the
 * voice-activity detector and the speech spans.
 */
export class SpeechActivity {
  readonly spans = new SpeechSpans()
  readonly #voice: VoiceActivity
  readonly #sampleRateHz: number
  #received = 0

  constructor(sampleRateHz: number) {
    this.#sampleRateHz = sampleRateHz
    this.#voice = new VoiceActivity(sampleRateHz)
  }

  write(samples: Int16Array): void {
    this.#received += samples.length
    for (const change of this.#voice.push(samples)) {
      if (!change.speaking) this.spans.add(change)
    }
    this.spans.setCurrent(this.#voice.current())
  }

  receivedMs(): number {
    return samplesToMs(this.#received, this.#sampleRateHz)
  }

  /** Speech before this time has been detected. */
  knownMs(): number {
    return Math.max(0, this.receivedMs() - onsetMs)
  }

  /** Whether the last moment before this time was silent. */
  isQuietAt(atMs: number): boolean {
    return this.spans.within(atMs - quietMs, atMs).length === 0
  }
}

export function totalMs(spans: readonly TimeSpan[]): number {
  return spans.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0)
}
