import { foldText } from '#lib/fold-text.ts'
import type { Embedder } from './embedder.ts'

export const localHashModel = 'local-hash'

/** Enough that the words of a text rarely collide, few enough for a small database. */
const dims = 384
/** The weight of a substring relative to its word. */
const substringWeight = 0.35
const substringChars = 4
/** Shorter words weigh less: most of them are function words. */
const fullWeightChars = 6

/**
 * Feature hashing of words and their substrings. It finds texts with common letters and knows nothing
 * of meaning, so that a fresh installation can search without an upstream.
 */
export function createLocalHashEmbedder(): Embedder {
  return {
    model: localHashModel,
    async embed(texts, { dims: requestedDims = dims }) {
      const length = Math.min(Math.max(requestedDims, 1), dims)
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
    // Repeated words weigh logarithmically.
    const weight = 1 + Math.log(count)
    add(vector, word, weight * Math.min(1, word.length / fullWeightChars))
    for (const substring of substrings(word)) add(vector, substring, weight * substringWeight)
  }
  return toUnitLength(vector)
}

const substringMark = '#'
const asciiSubstring = Buffer.from(substringMark.padEnd(1 + substringChars))

/** Marked, to differ from words. An ASCII substring is only valid until the next one. */
function* substrings(word: string): Generator<string | Uint8Array> {
  const bytes = Buffer.from(word)
  const isAscii = bytes.length === word.length
  for (let at = 0; at + substringChars <= word.length; at++) {
    if (isAscii) {
      // One buffer for all: a string for each character of a long text would be 100 times its size.
      bytes.copy(asciiSubstring, 1, at, at + substringChars)
      yield asciiSubstring
    } else yield substringMark + word.slice(at, at + substringChars)
  }
}

function add(vector: Float32Array, feature: string | Uint8Array, weight: number): void {
  const hash = Bun.hash.xxHash32(feature)
  const at = (hash >>> 1) % vector.length
  vector[at] = (vector[at] ?? 0) + ((hash & 1) === 0 ? weight : -weight)
}

function toUnitLength(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector)
  if (length > 0) return vector.map((value) => value / length)
  // A text without words still needs a valid vector.
  vector[0] = 1
  return vector
}
