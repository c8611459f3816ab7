import type { Inference } from '#inference/inference.ts'
import type { RerankInput, RerankResult } from '#inference/rerank.ts'
import type { RequestContext, RequestPrincipal } from '#lib/request-context.ts'
import type { ModelResolver } from '#models/model-resolver.ts'

/** Orders documents by their relevance to a query: a model of mode `rerank`. */
export type Reranker = {
  readonly model: string
  /**
   * The best first, ties by index; at most `topN`. No documents need no upstream. Throws an
   * `AppError`; an invalid response is `upstream_invalid_answer`.
   */
  rerank(input: RerankInput, context: RequestContext): Promise<RerankResult>
}

export type Rerankers = ReturnType<typeof createRerankers>

export function createRerankers({
  inference,
  modelResolver,
}: {
  inference: Pick<Inference, 'rerank'>
  modelResolver: Pick<ModelResolver, 'resolveMode'>
}) {
  return {
    /** By model name; throws `model_not_found`, or `model_mode_mismatch` for another mode. */
    async find(name: string, principal: RequestPrincipal): Promise<Reranker> {
      const { id, targets } = await modelResolver.resolveMode(principal, name, 'rerank')
      return {
        model: id,
        async rerank(input, context) {
          if (input.documents.length === 0) return { results: [], totalTokens: 0 }
          const { results, totalTokens } = await inference.rerank({ context, targets }, id, input)
          const sorted = results.toSorted((a, b) => b.score - a.score || a.index - b.index)
          return { results: sorted.slice(0, input.topN ?? sorted.length), totalTokens }
        },
      }
    },
  }
}
