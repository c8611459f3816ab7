/** Puts texts in the order in which they answer a query. One for each model of mode `rerank`. */
export type Reranker = {
  readonly model: string
  /**
   * The best first, ties by index; at most `topN`. Never asks an upstream for nothing. Throws an
   * `AppError` of an upstream's kind; indexes that are out of range or double, or scores that are
   * no numbers, are `upstream_invalid_answer`.
   */
  rerank(request: RerankRequest, signal: AbortSignal): Promise<Reranked>
}

export type RerankRequest = {
  readonly query: string
  readonly documents: readonly string[]
  readonly topN: number | null
  readonly tokensPerDocumentMax?: number
}

export type Reranked = {
  readonly results: readonly { readonly index: number; readonly score: number }[]
  readonly totalTokens: number | null
}

export type Rerankers = {
  /** By the name of a model; throws `model_not_found`, or `model_mode_mismatch` for another mode. */
  find(model: string): Promise<Reranker>
}
