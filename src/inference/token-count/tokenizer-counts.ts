import { orAfter } from '#lib/time-limit.ts'
import type { ClassTokens } from './content-class.ts'
import { byTokenizer, charsOf, keepCounts, type Measured, uncounted } from './measured.ts'
import type { Tokenizers } from './tokenizers.ts'

/** For whoever waits less than this nothing is asked or loaded. */
export const hastyMs = 50
/** What a loaded tokenizer counts in a millisecond or two. */
const hastyCharsMax = 16_384

/** The counts of a tokenizer; null where it cannot tell within `leftMs`. It never rejects. */
export async function countByTokenizer(
  { tokenizers, tokenizer }: { tokenizers: Tokenizers; tokenizer: string },
  measured: Measured,
  leftMs: number,
): Promise<ClassTokens | null> {
  const missing = uncounted(measured, tokenizer)
  if (missing.length > 0) {
    const isSlow = !tokenizers.isReady(tokenizer) || charsOf(missing) > hastyCharsMax
    if (leftMs <= 0 || (leftMs < hastyMs && isSlow)) return null
    const texts = missing.map(({ text }) => text)
    // What comes too late for this count is kept for the next one.
    const counting = tokenizers.count(tokenizer, texts).then((tokens) => {
      if (tokens !== null) keepCounts(missing, tokenizer, tokens)
      return tokens !== null
    })
    if (!(await orAfter(counting, leftMs, false))) return null
  }
  return byTokenizer(measured, tokenizer)
}
