import type { Span, Word } from '#speech/engine.ts'
import type { SpeechMap } from './speech-map.ts'

/** Where a text of an engine may lie, in milliseconds of the session. */
export type Bounds = {
  /** The end of the final before it. */
  readonly fromMs: number
  /** What the engine has taken in. */
  readonly processedMs: number
  /** What the engine was given. */
  readonly writtenMs: number
  /** The silence that parts two utterances. */
  readonly endpointingMs: number
}

export type Place = {
  readonly startMs: number
  readonly endMs: number
  /** Whether the end is what we make of it, not what the engine says. */
  readonly isReckoned: boolean
}

/**
 * When a text was said: as its engine or its words say, else by where speech is heard: from where
 * it begins to its first real pause. Texts never overlap the final before them.
 */
export function placeSpan(
  span: Pick<Span, 'startMs' | 'endMs'> & { readonly words?: readonly Word[] },
  bounds: Bounds,
  speech: SpeechMap,
): Place {
  const { fromMs, processedMs, writtenMs } = bounds
  const stretches = speech.within(fromMs, processedMs)
  const said = span.startMs ?? span.words?.[0]?.startMs ?? stretches[0]?.startMs ?? fromMs
  const startMs = Math.min(Math.max(said, fromMs), Math.max(fromMs, writtenMs))
  const toldEnd = span.endMs ?? span.words?.at(-1)?.endMs ?? null
  const end = toldEnd ?? pauseAfter(startMs, stretches, bounds)
  const endMs = Math.max(startMs, Math.min(end, writtenMs))
  return { startMs, endMs, isReckoned: toldEnd === null }
}

/** Where speech ends before its first real pause; where there is none, all that was taken in. */
function pauseAfter(
  startMs: number,
  stretches: readonly { readonly startMs: number; readonly endMs: number }[],
  { processedMs, endpointingMs }: Bounds,
): number {
  let endMs = startMs
  for (const stretch of stretches) {
    if (stretch.endMs <= startMs) continue
    if (endMs > startMs && stretch.startMs - endMs >= endpointingMs) return endMs
    endMs = stretch.endMs
  }
  return endMs > startMs ? endMs : processedMs
}

/** A word lies within its text. */
export function clampWord(word: Word, startMs: number, endMs: number): Word {
  const clamp = (ms: number) => Math.min(Math.max(ms, startMs), endMs)
  return { ...word, startMs: clamp(word.startMs), endMs: clamp(word.endMs) }
}
