import type { EngineEvent, Span } from '#speech/engine.ts'

/** The same event in whole milliseconds of a timeline on which its engine began at `originMs`. */
export function shiftEvent(event: EngineEvent, originMs: number): EngineEvent {
  const shift = (ms: number) => Math.round(ms + originMs)
  const shiftSpan = (span: Span) => ({
    startMs: span.startMs === null ? null : shift(span.startMs),
    endMs: span.endMs === null ? null : shift(span.endMs),
  })
  switch (event.type) {
    case 'partial':
      return { ...event, ...shiftSpan(event) }
    case 'final':
      return {
        ...event,
        ...shiftSpan(event),
        words: event.words.map((word) => ({
          ...word,
          startMs: shift(word.startMs),
          endMs: shift(word.endMs),
        })),
      }
    case 'speech-start':
      return { ...event, atMs: shift(event.atMs) }
    case 'progress':
      return { ...event, processedMs: Math.floor(event.processedMs + originMs) }
    default:
      return event
  }
}
