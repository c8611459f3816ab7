import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import type { Word } from '#speech/engine.ts'
import { readConfidence, readSeconds, readWords } from './words.ts'

/** One `Results` frame; its times are those of the audio that it is about. */
export type DeepgramResults = {
  readonly text: string
  readonly startMs: number
  readonly endMs: number
  readonly isFinal: boolean
  readonly speechFinal: boolean
  readonly fromFinalize: boolean
  readonly words: readonly Word[]
  readonly confidence: number | null
}

/** Null where the frame lacks what every such frame has. */
export function readResults(frame: JsonObject): DeepgramResults | null {
  const { alternatives } = asRecord(frame['channel'])
  const likeliest: unknown = Array.isArray(alternatives) ? alternatives[0] : undefined
  const startMs = readSeconds(frame['start'])
  const durationMs = readSeconds(frame['duration'])
  if (!isRecord(likeliest) || startMs === null || durationMs === null) return null
  const { transcript, words, confidence } = likeliest
  return {
    text: typeof transcript === 'string' ? transcript.trim() : '',
    startMs,
    endMs: startMs + durationMs,
    isFinal: frame['is_final'] === true,
    speechFinal: frame['speech_final'] === true,
    fromFinalize: frame['from_finalize'] === true,
    words: readWords(words, 'confidence', 'punctuated_word'),
    confidence: readConfidence(confidence),
  }
}
