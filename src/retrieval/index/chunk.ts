/** A passage of a file in an index. */
export type Chunk = {
  /** Position in the file, from 0. */
  readonly ordinal: number
  readonly text: string
  /** From 1; null: the file has no pages. */
  readonly page: number | null
  /** Position in the text of the file, in characters. */
  readonly start: number
  readonly end: number
}

export type EmbeddedChunk = Chunk & { readonly vector: Float32Array }

export type IndexSpec = {
  readonly model: string
  readonly dims: number
  /** The length of what a search returns. */
  readonly chunkTokensMax: number
  readonly chunkOverlapTokens: number
  /**
   * Small models find the subject of a short text more reliably: shorter parts are stored and found, and
   * a search returns them with their neighbours. Null: passages are stored whole.
   */
  readonly partTokensMax: number | null
}

export type ChunkIndex = IndexSpec & {
  readonly id: number
  readonly state: 'building' | 'active' | 'warm' | 'dropping'
}
