import type { AudioGap } from '#speech/decoders/decoder.ts'
import type {
  RecognitionEvent,
  RecognitionProgress,
  RecognitionStats,
  TimeSpan,
  Transcript,
} from './recognition.ts'

type Totals = Pick<RecognitionStats, 'silenceMs' | 'untranscribedMs' | 'gaps'>

/** Details of warnings that are points in time. */
const timeDetails = ['at_ms', 'start_ms', 'end_ms']

/**
 * Converts times of a recognition to those of its source. For a long gap in the source the recognition
 * receives only a short silence, in the middle of which the time of the source jumps.
 */
export class SourceTimeline {
  /** `skippedMs`: of all jumps up to this one. */
  readonly #jumps: { readonly fromMs: number; readonly skippedMs: number }[] = []

  /** After all earlier gaps. Returns the span of its silence, in times of the recognition. */
  addGap(startMs: number, { missingMs, filledMs }: AudioGap): TimeSpan {
    const lengthMs = Math.round(filledMs)
    const skippedMs = Math.round(missingMs) - lengthMs
    if (skippedMs > 0) {
      const sum = this.#skippedMs() + skippedMs
      this.#jumps.push({ fromMs: startMs + lengthMs / 2, skippedMs: sum })
    }
    return { startMs, endMs: startMs + lengthMs }
  }

  progress({ receivedMs, processedMs, finalMs }: RecognitionProgress): RecognitionProgress {
    return {
      receivedMs: this.#at(receivedMs),
      processedMs: this.#at(processedMs),
      finalMs: this.#at(finalMs),
    }
  }

  totals({ silenceMs, untranscribedMs, gaps }: Totals): Totals {
    return {
      silenceMs,
      untranscribedMs: untranscribedMs + this.#skippedMs(),
      gaps: gaps.map((gap) => this.#span(gap)),
    }
  }

  event(event: RecognitionEvent): RecognitionEvent {
    if (this.#jumps.length === 0) return event
    switch (event.type) {
      case 'speech-start':
        return { ...event, atMs: this.#at(event.atMs) }
      case 'finalized':
        return { ...event, audioMs: this.#at(event.audioMs) }
      case 'transcript':
        return this.#transcript(event)
      case 'warning':
        return { ...event, details: this.#details(event.details) }
      default:
        return event
    }
  }

  #transcript(transcript: Transcript): Transcript {
    return { ...this.#span(transcript), words: transcript.words.map((word) => this.#span(word)) }
  }

  #details(details: Record<string, unknown>): Record<string, unknown> {
    const times = timeDetails.filter((name) => name in details)
    return {
      ...details,
      ...Object.fromEntries(times.map((name) => [name, this.#at(Number(details[name]))])),
    }
  }

  #span<T extends TimeSpan>(span: T): T {
    return { ...span, startMs: this.#at(span.startMs), endMs: this.#at(span.endMs) }
  }

  #skippedMs(): number {
    return this.#jumps.at(-1)?.skippedMs ?? 0
  }

  #at(ms: number): number {
    return ms + (this.#jumps.findLast(({ fromMs }) => fromMs <= ms)?.skippedMs ?? 0)
  }
}
