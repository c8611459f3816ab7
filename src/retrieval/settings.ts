/** What an administrator sets; asked anew for each search, so that a change acts at once. */
export type RetrievalSettings = () => {
  /** 1 to 50: how many passages a model is given. */
  readonly retrievalK: number
  /** 1 to 50: at most so many come out of the reranker; null: as many as are asked for. */
  readonly rerankTopN: number | null
  /** The model of mode `rerank` that orders what was found; null: none. */
  readonly rerankModel: string | null
  /** The model of new collections. */
  readonly embeddingModel: string
}
