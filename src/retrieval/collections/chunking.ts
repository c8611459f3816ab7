import type { IndexSpec } from '#retrieval/index/chunk.ts'
import type { Chunking } from './collections.ts'

/** Passages that suit the model, unless the collection asks for others. */
export function chunkingOf(
  given: Chunking | null,
  { chunkTokensMax, chunkOverlapTokens }: Pick<IndexSpec, 'chunkTokensMax' | 'chunkOverlapTokens'>,
  suitableTokensMax = chunkTokensMax,
): Pick<IndexSpec, 'chunkTokensMax' | 'chunkOverlapTokens'> {
  if (given !== null) {
    return { chunkTokensMax: given.tokensMax, chunkOverlapTokens: given.overlapTokens }
  }
  const tokensMax = Math.min(chunkTokensMax, suitableTokensMax)
  const overlapTokens = Math.floor((chunkOverlapTokens * tokensMax) / chunkTokensMax)
  return { chunkTokensMax: tokensMax, chunkOverlapTokens: overlapTokens }
}
