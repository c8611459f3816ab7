import { deflateSync } from 'node:zlib'
import { renderSrt, renderVtt } from '#lib/captions.ts'
import type { TimeSpan, Transcript } from '#speech/recognition/recognition.ts'
import { incompleteWarning } from './errors.ts'
import type { Transcription, TranscriptionEvent, VerboseTranscription } from './record.ts'
import type { TranscriptionRequest } from './request.ts'
import type { FilePart, FileParts } from './transcribe-file.ts'

type End = Extract<FilePart, { type: 'end' }>

type Rendering = (
  segments: readonly Transcript[],
  end: End,
  request: TranscriptionRequest,
) => string

const formats: Readonly<
  Record<TranscriptionRequest['format'], { contentType: string; render: Rendering }>
> = {
  text: {
    contentType: 'text/plain; charset=utf-8',
    render: (segments) => `${textOf(segments)}\n`,
  },
  srt: { contentType: 'application/x-subrip; charset=utf-8', render: renderSrt },
  vtt: { contentType: 'text/vtt; charset=utf-8', render: renderVtt },
  json: {
    contentType: 'application/json',
    render: (...transcript) => JSON.stringify(renderShort(...transcript)),
  },
  verbose_json: {
    contentType: 'application/json',
    render: (...transcript) => JSON.stringify(renderVerbose(...transcript)),
  },
}

/** Renders the complete transcript in the requested format. */
export async function renderTranscript(parts: FileParts, request: TranscriptionRequest) {
  const { contentType, render } = formats[request.format]
  const segments: Transcript[] = []
  for await (const part of parts) {
    if (part.type === 'end')
      return { body: render(segments, part, request), contentType, end: part }
    segments.push(...part.finals)
  }
  throw new Error('the transcript has no end')
}

function renderShort(
  segments: readonly Transcript[],
  end: End,
  request: TranscriptionRequest,
): Transcription {
  return {
    text: textOf(segments),
    ...logprobsOf(segments, request),
    usage: renderUsage(end),
    ...renderMissing(end),
  }
}

function renderVerbose(
  segments: readonly Transcript[],
  end: End,
  { includes, language }: TranscriptionRequest,
): VerboseTranscription {
  return {
    task: 'transcribe',
    language,
    duration: toSeconds(end.stats.receivedMs),
    text: textOf(segments),
    ...(includes.words ? { words: segments.flatMap(renderWords) } : {}),
    ...(includes.segments ? { segments: segments.map(renderSegment) } : {}),
    usage: renderUsage(end),
    untranscribed_ms: 0,
    gaps: [],
    ...renderMissing(end),
  }
}

/** A known event without effect: unknown events break strict clients. */
export const heartbeatEvent: TranscriptionEvent = { type: 'transcript.text.delta', delta: '' }

/** The events of a stream, in batches that are sent together. */
export async function* streamTranscript(
  parts: FileParts,
  request: TranscriptionRequest,
): AsyncGenerator<readonly TranscriptionEvent[], void, void> {
  const sent: Transcript[] = []
  for await (const part of parts) {
    if (part.type === 'finals') {
      const offset = sent.length
      sent.push(...part.finals)
      yield part.finals.flatMap((final, index) => renderFinal(final, offset + index, request))
    } else {
      yield [{ type: 'transcript.text.done', ...renderShort(sent, part, request) }]
    }
  }
}

/** Deltas cannot be withdrawn, so they contain only finals. */
function renderFinal(
  final: Transcript,
  id: number,
  request: TranscriptionRequest,
): TranscriptionEvent[] {
  const { text } = final
  const delta: TranscriptionEvent = {
    type: 'transcript.text.delta',
    delta: id === 0 ? text : ` ${text}`,
    ...logprobsOf([final], request),
  }
  if (request.format !== 'verbose_json') return [delta]
  const span = renderSpan(final)
  return [delta, { type: 'transcript.text.segment', id: `seg_${id}`, ...span, text, speaker: '' }]
}

function textOf(segments: readonly Transcript[]): string {
  return segments.map(({ text }) => text).join(' ')
}

function renderUsage({ stats }: End): Transcription['usage'] {
  return { type: 'duration', seconds: toSeconds(stats.receivedMs) }
}

/** Untranscribed speech and a missing end; empty if the transcript is complete. */
function renderMissing({
  stats: { untranscribedMs, gaps, receivedMs },
  incomplete,
}: End): Pick<Transcription, 'untranscribed_ms' | 'gaps' | 'warnings'> {
  return {
    ...(untranscribedMs > 0 && {
      untranscribed_ms: Math.round(untranscribedMs),
      gaps: gaps.map(renderSpan),
    }),
    ...(incomplete && { warnings: [incompleteWarning(incomplete, receivedMs)] }),
  }
}

function logprobsOf(
  segments: readonly Transcript[],
  { includesLogprobs }: TranscriptionRequest,
): Pick<Transcription, 'logprobs'> {
  if (!includesLogprobs) return {}
  const logprobs = segments
    .flatMap(({ words }) => words)
    .flatMap(({ word, confidence }) =>
      confidence === null
        ? []
        : [{ token: word, logprob: toLogprob(confidence), bytes: [...Buffer.from(word)] }],
    )
  return { logprobs }
}

function renderSpan({ startMs, endMs }: TimeSpan) {
  return { start: toSeconds(startMs), end: toSeconds(endMs) }
}

function renderWords({ words }: Transcript) {
  return words.map((word) => ({
    word: word.word,
    ...renderSpan(word),
    ...(word.confidence === null ? {} : { confidence: word.confidence }),
  }))
}

/** A segment in Whisper's format; values that engines do not report are those of certainty. */
function renderSegment(segment: Transcript, id: number) {
  const { text, confidence, startMs } = segment
  const bytes = Buffer.from(text)
  return {
    id,
    // Whisper's frames are ten milliseconds long.
    seek: Math.round(startMs / 10),
    ...renderSpan(segment),
    text,
    tokens: [],
    temperature: 0,
    avg_logprob: toLogprob(confidence ?? 1),
    compression_ratio: bytes.length / deflateSync(bytes).length,
    no_speech_prob: 0,
  }
}

/** JSON has no infinity. */
const probabilityMin = 1e-6

function toLogprob(probability: number): number {
  return Math.min(0, Math.log(Math.max(probability, probabilityMin)))
}

function toSeconds(ms: number): number {
  return Math.round(ms) / 1000
}
