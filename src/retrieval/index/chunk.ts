import type { Transaction } from '#jobs/jobs.ts'

/** One passage of a file in one index. */
export type Chunk = {
  /** 0, 1, 2 … within its file. */
  readonly ordinal: number
  readonly text: string
  /** 1, 2, 3 …; null where there are no pages. */
  readonly page: number | null
  /** Where it stands in the text of the file, in characters. */
  readonly start: number
  readonly end: number
}

export type EmbeddedChunk = Chunk & { readonly vector: Float32Array }

export type IndexSpec = {
  readonly model: string
  readonly dims: number
  readonly chunkTokensMax: number
  readonly chunkOverlapTokens: number
}

export type ChunkIndex = IndexSpec & {
  readonly id: number
  readonly state: 'building' | 'active' | 'warm' | 'dropping'
}

/** The tables of passages, one for each index. */
export type ChunkTables = {
  /** The active index of this kind; made, with its table, where there is none. */
  provide(spec: IndexSpec): Promise<ChunkIndex>
  /** A new index beside the active ones, for a reindex; in the caller's transaction, if there is one. */
  create(spec: IndexSpec, transaction?: Transaction): Promise<ChunkIndex>
  find(id: number): Promise<ChunkIndex | undefined>
  /** All passages of a file in place of those before, in the caller's transaction. */
  replace(
    transaction: Transaction,
    index: ChunkIndex,
    fileId: string,
    chunks: readonly EmbeddedChunk[],
  ): Promise<void>
  /** The index, its table and what files have there. */
  drop(id: number): Promise<void>
}
