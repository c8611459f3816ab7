export type CountRequest = {
  id: number
  /** `builtInTokenizer`, or the path of a `tokenizer.json`. */
  tokenizer: string
  texts: readonly string[]
}
export type CountReport =
  | { id: number; type: 'counted'; tokens: readonly number[] }
  /** The tokenizer is there, but cannot tell of these texts. */
  | { id: number; type: 'uncountable' }
  | { id: number; type: 'failed'; reason: string }

/** OpenAI's vocabulary of 200,000 entries, the nearest to most newer ones. */
export const builtInTokenizer = 'o200k'
