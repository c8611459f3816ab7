import type { RecognitionStats, Transcript } from '#speech/recognition/recognition.ts'
import type { TranscriptionEvent } from './answer-schema.ts'
import type { TranscriptionRequest } from './read-request.ts'
import { renderLogprobs, renderMissing, renderSpan, renderUsage, textOf } from './render.ts'
import type { FileParts } from './transcribe-file.ts'

/** A known event that changes nothing: unknown ones break strict clients. */
export const heartbeatEvent: TranscriptionEvent = { type: 'transcript.text.delta', delta: '' }

/** The events of a stream, in batches that go out together. */
export async function* streamTranscript(
  parts: FileParts,
  request: TranscriptionRequest,
): AsyncGenerator<readonly TranscriptionEvent[], void, void> {
  const told: Transcript[] = []
  for await (const part of parts) {
    if (part.type === 'end') yield [renderDone(told, part.stats, request)]
    else yield part.finals.flatMap((final, at) => renderFinal(final, told.length + at, request))
    if (part.type === 'finals') told.push(...part.finals)
  }
}

function renderDone(
  told: readonly Transcript[],
  stats: RecognitionStats,
  request: TranscriptionRequest,
): TranscriptionEvent {
  return {
    type: 'transcript.text.done',
    text: textOf(told),
    ...logprobsOf(told, request),
    usage: renderUsage(stats),
    ...renderMissing(stats),
  }
}

/** Deltas cannot be taken back, so they hold nothing but finals. */
function renderFinal(
  final: Transcript,
  id: number,
  request: TranscriptionRequest,
): TranscriptionEvent[] {
  const delta: TranscriptionEvent = {
    type: 'transcript.text.delta',
    delta: id === 0 ? final.text : ` ${final.text}`,
    ...logprobsOf([final], request),
  }
  if (request.form !== 'verbose_json') return [delta]
  const { text } = final
  const span = { id: `seg_${id}`, ...renderSpan(final), text, speaker: '' }
  return [delta, { type: 'transcript.text.segment', ...span }]
}

function logprobsOf(finals: readonly Transcript[], { wantsLogprobs }: TranscriptionRequest) {
  return wantsLogprobs ? { logprobs: renderLogprobs(finals) } : {}
}
