import type { CurrentSettings } from '#settings/schema.ts'

/** Settings that administrators change at run time; read for each search. */
export type RetrievalSettings = () => {
  /** Passages per search, 1 to 50. */
  readonly retrievalK: number
  /** Passages kept after reranking, 1 to 50; null: as many as requested. */
  readonly rerankTopN: number | null
  /** Name of a model of mode `rerank`; null: results are not reranked. */
  readonly rerankModel: string | null
  /** The model of new collections. */
  readonly embeddingModel: string
}

export function retrievalSettings({ current }: CurrentSettings): RetrievalSettings {
  return () => {
    const { retrieval_k, rerank_top_n, reranker_model, embedding_model } = current()
    return {
      retrievalK: retrieval_k,
      rerankTopN: rerank_top_n,
      rerankModel: reranker_model,
      embeddingModel: embedding_model,
    }
  }
}
