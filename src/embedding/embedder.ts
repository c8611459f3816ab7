/**
 * Turns texts into vectors. One for each model of mode `embed`, and the built-in `local-hash`, which
 * knows words by their letters alone and says so in its name.
 */
export type Embedder = {
  readonly model: string
  /**
   * One vector for each text, in order, of one length, finite and not zero. Asks in batches that
   * the model takes. Throws an `AppError` of an upstream's kind; an answer with too few vectors,
   * with other lengths or with numbers that are none is `upstream_invalid_answer`.
   */
  embed(texts: readonly string[], options: EmbedOptions): Promise<Embedding>
}

export type EmbedOptions = {
  /** Some models embed what is asked otherwise than what is kept. */
  readonly purpose: 'query' | 'passage'
  readonly signal: AbortSignal
  /** Shorter vectors than the model's own, where it can. */
  readonly dims?: number
}

export type Embedding = {
  readonly vectors: readonly Float32Array[]
  readonly dims: number
  readonly inputTokens: number | null
}

export type Embedders = {
  /** By the name of a model; throws `model_not_found`, or `model_mode_mismatch` for another mode. */
  find(model: string): Promise<Embedder>
}
