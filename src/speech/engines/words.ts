import { isRecord } from '#lib/json.ts'
import type { Word } from '#speech/engine.ts'

/** More than can be said within the longest utterance of any server. */
const wordsMax = 10_000

/** Words whose times are in seconds; what is not one is left out. */
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

export function moveWords(words: readonly Word[], byMs: number): readonly Word[] {
  if (byMs === 0) return words
  return words.map(({ word, startMs, endMs, confidence }) => ({
    word,
    startMs: Math.round(startMs + byMs),
    endMs: Math.round(endMs + byMs),
    confidence,
  }))
}

/** Milliseconds; null where there is no time. */
export function readSeconds(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? Math.round(value * 1000) : null
}

/** Null for what is no probability: some servers give scores that have no upper end. */
export function readConfidence(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 && value <= 1 ? value : null
}

export function meanConfidence(words: readonly Word[]): number | null {
  const known = words.flatMap(({ confidence }) => (confidence === null ? [] : [confidence]))
  if (known.length === 0) return null
  return known.reduce((sum, each) => sum + each, 0) / known.length
}
