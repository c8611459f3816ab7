import { type Span, samplesToMs, type Word } from '#speech/engine.ts'
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
  /** The span in progress; null in silence. */
  current: TimeSpan | null = null

  /** Adds a completed span after all others. */
  add({ startMs, endMs }: TimeSpan): void {
    this.#spans.push({ startMs, endMs })
    const [first, second] = this.#spans
    if (this.#spans.length <= spansMax || first === undefined || second === undefined) return
    this.#spans.splice(0, 2, { startMs: first.startMs, endMs: second.endMs })
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
    if (this.current !== null) add(this.current)
    return clipped
  }

  /** Whether the span at this time is still in progress. */
  isInProgressAt(atMs: number): boolean {
    const { current } = this
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
    this.spans.current = this.#voice.current()
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

  /** Returns speech without text once it exceeds the limit, else null. */
  find(processedMs: number, hasPartials: boolean): (TimeSpan & { speechMs: number }) | null {
    const all = this.#spans.within(this.#fromMs, processedMs)
    // Without partials, text can only be missing where the utterance has ended.
    const spans = hasPartials ? all : all.filter(({ endMs }) => endMs + finalDelayMs <= processedMs)
    const speechMs = totalMs(spans)
    const [first] = spans
    if (first === undefined || speechMs < this.#speechMsMax) return null
    return { startMs: first.startMs, endMs: processedMs, speechMs }
  }

  /**
   * As `find`, for an engine that has returned the text of all that it processed. Speech is returned
   * once for each of two engines, then not again until an engine returns text.
   */
  check(processedMs: number, hasPartials: boolean): SilentSpeech | null {
    const found = this.find(processedMs, hasPartials)
    if (found === null) return null
    this.#fromMs = processedMs
    this.#detections += 1
    return this.#detections > 2 ? null : { ...found, isConfirmed: this.#detections === 2 }
  }
}

/** Limits for the position of a text, in milliseconds of the session. */
export type SpanBounds = {
  /** The end of the previous final. */
  readonly fromMs: number
  /** Audio that the engine has processed. */
  readonly processedMs: number
  /** Audio that the engine has received. */
  readonly sentMs: number
  /** Silence that separates two utterances. */
  readonly endpointingMs: number
}

export type EstimatedSpan = TimeSpan & {
  /** Whether the end is our estimate instead of the engine's. */
  readonly isEstimated: boolean
}

/**
 * Determines when a text was spoken: from its own times or those of its words, otherwise from
 * detected speech, up to the first real pause. Texts never overlap the previous final.
 */
export function estimateSpan(
  span: Pick<Span, 'startMs' | 'endMs'> & { readonly words?: readonly Word[] },
  bounds: SpanBounds,
  speech: SpeechSpans,
): EstimatedSpan {
  const { fromMs, processedMs, sentMs } = bounds
  const spans = speech.within(fromMs, processedMs)
  const start = span.startMs ?? span.words?.[0]?.startMs ?? spans[0]?.startMs ?? fromMs
  const startMs = Math.min(Math.max(start, fromMs), Math.max(fromMs, sentMs))
  const reportedEnd = span.endMs ?? span.words?.at(-1)?.endMs ?? null
  const end = reportedEnd ?? nextPause(startMs, spans, bounds)
  const endMs = Math.max(startMs, Math.min(end, sentMs))
  return { startMs, endMs, isEstimated: reportedEnd === null }
}

/** The end of speech before its first real pause; without one, the processed position. */
function nextPause(
  startMs: number,
  spans: readonly TimeSpan[],
  { processedMs, endpointingMs }: SpanBounds,
): number {
  let endMs = startMs
  for (const span of spans) {
    if (span.endMs <= startMs) continue
    if (endMs > startMs && span.startMs - endMs >= endpointingMs) return endMs
    endMs = span.endMs
  }
  return endMs > startMs ? endMs : processedMs
}

/** Limits the times of a word to those of its text. */
export function clampWord(word: Word, startMs: number, endMs: number): Word {
  const clamp = (ms: number) => Math.min(Math.max(ms, startMs), endMs)
  return { ...word, startMs: clamp(word.startMs), endMs: clamp(word.endMs) }
}
