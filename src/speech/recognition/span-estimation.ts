import type { Span, Word } from '#speech/engine.ts'
import type { TimeSpan } from './recognition.ts'
import type { SpeechSpans } from './speech-activity.ts'

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
