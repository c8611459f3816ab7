import type { Span } from '#lib/trace.ts'
import type { SessionStart, SpeechSession } from './session.ts'
import type { SessionEnding } from './transcriber.ts'

/** The span of a session, under its first connection; it may outlive that one. Null: not sampled. */
export function startSpeechSpan({ context, query }: SessionStart): Span | null {
  const parent = context.trace?.span
  if (parent == null) return null
  return parent.startChild('speech session', {
    attributes: {
      'gen_ai.operation.name': 'transcribe',
      'sluice.speech.language': query.language,
      'sluice.speech.encoding': query.encoding,
    },
  })
}

export function endSpeechSpan(span: Span, { id }: SpeechSession, ending: SessionEnding): void {
  const { closeCode, error, reason, stats } = ending
  span.set({
    'sluice.speech.session.id': id,
    'sluice.speech.engine': stats?.engine.name,
    'sluice.speech.engine.sessions': stats?.engine.sessions,
    'sluice.speech.audio_ms': stats?.audio_ms,
    'sluice.speech.untranscribed_ms': stats?.untranscribed_ms,
    'sluice.speech.resumes': stats?.resumes,
    'sluice.speech.end': reason,
    'sluice.speech.close_code': closeCode,
  })
  if (error !== null) span.fail(error.code, error.message)
  span.end()
}
