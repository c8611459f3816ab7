import { isRecord } from '#lib/json.ts'
import type { EngineEvent, Word } from '#speech/engine.ts'

/** More than the longest utterance of any server contains. */
const wordsMax = 10_000

/** Reads words with times in seconds; invalid items are skipped. */
export function readWords(
  value: unknown,
  confidenceField: 'conf' | 'confidence',
  textField = 'word',
): Word[] {
  if (!Array.isArray(value)) return []
  return value.slice(0, wordsMax).flatMap((item: unknown) => {
    if (!isRecord(item)) return []
    const word = item[textField] ?? item['word']
    const startMs = readSeconds(item['start'])
    const endMs = readSeconds(item['end'])
    if (typeof word !== 'string' || word === '' || startMs === null || endMs === null) return []
    return [{ word, startMs, endMs, confidence: readConfidence(item[confidenceField]) }]
  })
}

export function shiftWords(words: readonly Word[], byMs: number): readonly Word[] {
  if (byMs === 0) return words
  return words.map((word) => ({
    ...word,
    startMs: Math.round(word.startMs + byMs),
    endMs: Math.round(word.endMs + byMs),
  }))
}

/** Seconds as milliseconds; null if the value is not a number. */
export function readSeconds(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? Math.round(value * 1000) : null
}

/** Null if the value is not a probability: some servers report unbounded scores. */
export function readConfidence(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 && value <= 1 ? value : null
}

export function meanConfidence(words: readonly Word[]): number | null {
  const known = words.flatMap(({ confidence }) => (confidence === null ? [] : [confidence]))
  if (known.length === 0) return null
  return known.reduce((sum, confidence) => sum + confidence, 0) / known.length
}

type FinalResult = {
  readonly text: string
  readonly words: readonly Word[]
  readonly confidence: number | null
  readonly speechFinal: boolean
  /** The times of the utterance, if the words have none. */
  readonly startMs?: number | null
  readonly endMs?: number | null
}

/** The event for the result of an utterance, which is dropped if it has no text. */
export function finalEvent({ text, words, confidence, speechFinal, ...span }: FinalResult) {
  if (text === '') return { type: 'utterance-dropped' } satisfies EngineEvent
  const startMs = words[0]?.startMs ?? span.startMs ?? null
  const endMs = words.at(-1)?.endMs ?? span.endMs ?? null
  // Times of different origin may contradict each other.
  const isOrdered = startMs === null || endMs === null || startMs <= endMs
  const times = { startMs, endMs: isOrdered ? endMs : startMs }
  return { type: 'final', text, ...times, words, confidence, speechFinal } satisfies EngineEvent
}

export function readText(value: unknown): string {
  return typeof value === 'string' ? value.trim() : ''
}
