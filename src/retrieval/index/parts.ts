import type { IndexSpec } from './chunk.ts'

type Model = Pick<IndexSpec, 'model' | 'dims'> & {
  /** See `Embedder`. */
  readonly passageTokensMax?: number | undefined
}

/** The index for passages of a model, as they were asked for or as before; in parts, if they suit it better. */
export function indexSpecFor(
  { model, dims, passageTokensMax }: Model,
  chunking: { readonly tokensMax: number; readonly overlapTokens: number } | null,
  before: Pick<IndexSpec, 'chunkTokensMax' | 'chunkOverlapTokens'>,
): IndexSpec {
  const chunkTokensMax = chunking?.tokensMax ?? before.chunkTokensMax
  const chunkOverlapTokens = chunking?.overlapTokens ?? before.chunkOverlapTokens
  const suitableTokensMax = passageTokensMax ?? chunkTokensMax
  const partTokensMax = suitableTokensMax < chunkTokensMax ? suitableTokensMax : null
  return { model, dims, chunkTokensMax, chunkOverlapTokens, partTokensMax }
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
