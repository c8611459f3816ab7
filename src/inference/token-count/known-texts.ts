import { measureText } from '#inference/tokens.ts'
import { createLru } from '#lib/lru.ts'
import { type ContentClass, classOf } from './content-class.ts'

/** What is known of one text; it is filled in by whoever counts it. */
export type KnownText = {
  /** Stands for the text, which is not kept. */
  readonly key: string
  readonly contentClass: ContentClass
  estimatedTokens: number | null
  /** By the name of a tokenizer. */
  readonly tokens: Map<string, number>
}

export type KnownTexts = {
  /** What is known of a text, by its content: a conversation that grows costs only its tail. */
  of(text: string): KnownText
}

export function createKnownTexts({ textsMax }: { textsMax: number }): KnownTexts {
  const known = createLru<string, KnownText>(textsMax)
  // So that nobody can make two texts that are taken for one another.
  const seed = crypto.getRandomValues(new BigUint64Array(1))[0] ?? 0n
  return {
    of(text) {
      const key = `${Bun.hash(text, seed).toString(36)} ${text.length}`
      const found = known.get(key)
      if (found !== undefined) return found
      const entry: KnownText = {
        key,
        contentClass: classOf(text),
        estimatedTokens: null,
        tokens: new Map(),
      }
      known.set(key, entry)
      return entry
    },
  }
}

/** The estimate for a text, made once. */
export function estimateKnown(known: KnownText, text: string): number {
  known.estimatedTokens ??= measureText(text)
  return known.estimatedTokens
}
