import { foldText } from '#lib/fold-text.ts'
import type { Embedder } from './embedder.ts'

export const localHashModel = 'local-hash'

/** Enough that words of one text rarely fall together, few enough for a small database. */
const dims = 384
/** What a part weighs beside its word. */
const partWeight = 0.35
const partLength = 4
/** Short words are mostly the little ones that every text has. */
const fullWordLength = 6

/**
 * Words and their parts, each thrown by a hash onto some dimension with some sign. It finds texts
 * that have letters in common and knows nothing of meaning: a fresh checkout can search by it.
 */
export function createLocalHashEmbedder(): Embedder {
  return {
    model: localHashModel,
    async embed(texts, { dims: shorter = dims }) {
      const length = Math.min(Math.max(shorter, 1), dims)
      return {
        vectors: texts.map((text) => hashText(text, length)),
        dims: length,
        inputTokens: null,
      }
    },
  }
}

function hashText(text: string, length: number): Float32Array {
  const vector = new Float32Array(length)
  const counts = new Map<string, number>()
  for (const [word] of foldText(text).matchAll(/[\p{L}\p{N}]+/gu)) {
    counts.set(word, (counts.get(word) ?? 0) + 1)
  }
  for (const [word, count] of counts) {
    // A word that is said ten times does not matter ten times as much.
    const weight = 1 + Math.log(count)
    add(vector, word, weight * Math.min(1, word.length / fullWordLength))
    for (let at = 0; at + partLength <= word.length; at++) {
      add(vector, `#${word.slice(at, at + partLength)}`, weight * partWeight)
    }
  }
  return toUnitLength(vector)
}

function add(vector: Float32Array, feature: string, weight: number): void {
  const hash = Bun.hash.xxHash32(feature)
  const at = (hash >>> 1) % vector.length
  vector[at] = (vector[at] ?? 0) + ((hash & 1) === 0 ? weight : -weight)
}

function toUnitLength(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector)
  if (length > 0) return vector.map((value) => value / length)
  // A text without any word: far from everything, but of the length that a vector must have.
  vector[0] = 1
  return vector
}
