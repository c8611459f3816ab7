import type { IndexSpec } from './chunk.ts'

/** The parts that suit the model; null if its passages are short enough. */
export function partTokensFor(
  chunkTokensMax: number,
  suitableTokensMax = chunkTokensMax,
): IndexSpec['partTokensMax'] {
  return suitableTokensMax < chunkTokensMax ? suitableTokensMax : null
}

/** How texts are split for an index. Parts overlap by the same share as passages. */
export function splitLimitsOf({ chunkTokensMax, chunkOverlapTokens, partTokensMax }: IndexSpec) {
  const tokensMax = partTokensMax ?? chunkTokensMax
  const overlapTokens = Math.floor((chunkOverlapTokens * tokensMax) / chunkTokensMax)
  return { tokensMax, overlapTokens }
}

/** The parts that a search returns together, at most. */
export function partsPerPassage({
  chunkTokensMax,
  partTokensMax,
}: Pick<IndexSpec, 'chunkTokensMax' | 'partTokensMax'>): number {
  return partTokensMax === null ? 1 : Math.floor(chunkTokensMax / partTokensMax)
}
