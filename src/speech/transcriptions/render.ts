import { deflateSync } from 'node:zlib'
import type { RecognitionStats, Transcript } from '#speech/recognition/recognition.ts'
import type {
  Logprobs,
  Missing,
  Transcription,
  TranscriptionSegment,
  TranscriptionWord,
  VerboseTranscription,
} from './answer-schema.ts'
import { renderSrt, renderVtt } from './captions.ts'
import type { TranscriptionRequest } from './read-request.ts'
import type { FileParts } from './transcribe-file.ts'

/** A file as text. */
export type FileTranscript = {
  readonly segments: readonly Transcript[]
  readonly stats: RecognitionStats
}

/** Takes all of it. */
export async function wholeTranscript(parts: FileParts): Promise<FileTranscript> {
  const segments: Transcript[] = []
  for await (const part of parts) {
    if (part.type === 'end') return { segments, stats: part.stats }
    segments.push(...part.finals)
  }
  throw new Error('the parts of a file had no end')
}

export type RenderedAnswer = { readonly body: string; readonly contentType: string }

const plain = 'text/plain; charset=utf-8'

export function renderTranscript(
  transcript: FileTranscript,
  request: TranscriptionRequest,
): RenderedAnswer {
  const { segments } = transcript
  switch (request.form) {
    case 'text':
      return { body: `${textOf(segments)}\n`, contentType: plain }
    case 'srt':
      return { body: renderSrt(segments), contentType: 'application/x-subrip; charset=utf-8' }
    case 'vtt':
      return { body: renderVtt(segments), contentType: 'text/vtt; charset=utf-8' }
    case 'json':
      return asJson(renderShort(transcript, request))
    case 'verbose_json':
      return asJson(renderVerbose(transcript, request))
  }
}

export function textOf(segments: readonly Transcript[]): string {
  return segments.map(({ text }) => text).join(' ')
}

export function renderUsage({ receivedMs }: RecognitionStats): Transcription['usage'] {
  return { type: 'duration', seconds: seconds(receivedMs) }
}

/** The speech that no engine made words of; nothing where there is none. */
export function renderMissing({ untranscribedMs, gaps }: RecognitionStats): Missing {
  if (untranscribedMs === 0) return {}
  return { untranscribed_ms: Math.round(untranscribedMs), gaps: gaps.map(renderSpan) }
}

/** The chances of words, as far as the engine tells them. */
export function renderLogprobs(segments: readonly Transcript[]): Logprobs {
  return segments
    .flatMap(({ words }) => words)
    .flatMap(({ word, confidence }) =>
      confidence === null
        ? []
        : [{ token: word, logprob: logOf(confidence), bytes: [...Buffer.from(word)] }],
    )
}

export function renderSpan({ startMs, endMs }: { startMs: number; endMs: number }) {
  return { start: seconds(startMs), end: seconds(endMs) }
}

function renderShort(
  { segments, stats }: FileTranscript,
  { wantsLogprobs }: TranscriptionRequest,
): Transcription {
  return {
    text: textOf(segments),
    ...(wantsLogprobs ? { logprobs: renderLogprobs(segments) } : {}),
    usage: renderUsage(stats),
    ...renderMissing(stats),
  }
}

function renderVerbose(
  { segments, stats }: FileTranscript,
  { holds, language }: TranscriptionRequest,
): VerboseTranscription {
  return {
    task: 'transcribe',
    language,
    duration: seconds(stats.receivedMs),
    text: textOf(segments),
    ...(holds.words ? { words: segments.flatMap(renderWords) } : {}),
    ...(holds.segments ? { segments: segments.map(renderSegment) } : {}),
    usage: renderUsage(stats),
    untranscribed_ms: 0,
    gaps: [],
    ...renderMissing(stats),
  }
}

function renderWords({ words }: Transcript): TranscriptionWord[] {
  return words.map(({ word, startMs, endMs, confidence }) => ({
    word,
    ...renderSpan({ startMs, endMs }),
    ...(confidence === null ? {} : { confidence }),
  }))
}

/** With the fields of Whisper's segments; what an engine does not tell has the value of certainty. */
function renderSegment(segment: Transcript, id: number): TranscriptionSegment {
  const { text, confidence, startMs } = segment
  const bytes = Buffer.from(text)
  return {
    id,
    // Whisper counts its frames, of ten milliseconds.
    seek: Math.round(startMs / 10),
    ...renderSpan(segment),
    text,
    tokens: [],
    temperature: 0,
    avg_logprob: logOf(confidence ?? 1),
    compression_ratio: bytes.length / deflateSync(bytes).length,
    no_speech_prob: 0,
  }
}

/** JSON knows no infinity. */
const chanceMin = 1e-6

function logOf(chance: number): number {
  return Math.min(0, Math.log(Math.max(chance, chanceMin)))
}

function seconds(ms: number): number {
  return Math.round(ms) / 1000
}

function asJson(value: object): RenderedAnswer {
  return { body: JSON.stringify(value), contentType: 'application/json' }
}
