import type { Embeddings } from '#inference/embeddings.ts'
import type { RerankResult } from '#inference/rerank.ts'
import { AppError } from '#lib/errors.ts'
import type { RunResult } from './wire.ts'

/** The vectors of all runs. Throws `invalid_request` for a length that the model does not have. */
export function decodeEmbeddings(
  results: readonly RunResult[],
  { name, dims: requested }: { name: string; dims: number | undefined },
): Embeddings {
  const vectors: Float32Array[] = []
  let tokens = 0
  for (const result of results) {
    tokens += result.tokens
    if (result.kind !== 'embedded') continue
    for (let at = 0; at < result.vectors.length; at += result.dims) {
      vectors.push(result.vectors.slice(at, at + result.dims))
    }
  }
  const dims = vectors[0]?.length ?? 0
  if (requested === undefined || requested === dims) return { vectors, dims, inputTokens: tokens }
  throw new AppError(
    'invalid_request',
    `The model "${name}" has vectors of ${dims} dimensions and cannot shorten them.`,
    { param: 'dimensions' },
  )
}

/** The scores of all runs, in the order of the documents. */
export function decodeScores(results: readonly RunResult[]): RerankResult {
  const scores = results.flatMap((result) => (result.kind === 'scored' ? result.scores : []))
  return {
    results: scores.map((score, index) => ({ index, score })),
    totalTokens: results.reduce((sum, { tokens }) => sum + tokens, 0),
  }
}
