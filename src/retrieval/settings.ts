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
